//! NVSHMEM host library.

/// Hands the rows of NVSHMEM host library to the macro `$with`.
#[macro_export]
macro_rules! for_each_nvshmem {
    ($with:ident) => {
        $with! {
            accepted nvshmem_barrier_all;
            accepted nvshmem_free;
            accepted nvshmem_info_get_version;
            accepted nvshmem_init;
            accepted nvshmem_malloc;
            accepted nvshmem_ptr;
            data nvshmem_selected_device_transport;
            accepted nvshmem_team_n_pes;
            accepted nvshmem_team_split_strided;
            accepted nvshmemid_hostlib_finalize;
            accepted nvshmemid_hostlib_init_attr;
            accepted nvshmemid_init_status;
            accepted nvshmemx_alltoallmem_on_stream;
            accepted nvshmemx_broadcastmem_on_stream;
            accepted nvshmemx_cumodule_init;
            accepted nvshmemx_get_uniqueid;
            accepted nvshmemx_getmem_on_stream;
            accepted nvshmemx_mc_ptr;
            accepted nvshmemx_putmem_on_stream;
            accepted nvshmemx_putmem_signal_on_stream;
            accepted nvshmemx_set_attr_uniqueid_args;
            accepted nvshmemx_signal_wait_until_on_stream;
        }
    };
}

for_each_nvshmem!(rows);
