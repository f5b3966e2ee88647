//! NVSHMEM host library.

/// Hands the rows of NVSHMEM host library to the macro `$with`.
#[macro_export]
macro_rules! for_each_nvshmem {
    ($with:ident) => {
        $with! {
            accepted nvshmem_barrier_all;
            recorded nvshmem_free(address: Address) -> () => symmetric::free;
            quiet nvshmem_info_get_version(major: Out<i32>, minor: Out<i32>) -> () => symmetric::version;
            accepted nvshmem_init;
            recorded nvshmem_malloc(bytes: usize) -> Address => symmetric::allocate;
            quiet nvshmem_my_pe() -> i32 => symmetric::own_member;
            quiet nvshmem_n_pes() -> i32 => symmetric::member_count;
            quiet nvshmem_ptr(address: Address, member: i32) -> Address => symmetric::pointer;
            data nvshmem_selected_device_transport;
            quiet nvshmem_team_n_pes(team: i32) -> i32 => symmetric::team_member_count;
            accepted nvshmem_team_split_strided [6: zero_i32];
            accepted nvshmemid_hostlib_finalize;
            accepted nvshmemid_hostlib_init_attr;
            accepted nvshmemid_init_status;
            recorded nvshmemx_alltoallmem_on_stream(team: i32, to: Address, from: Address, count: usize, stream: Address) => symmetric::all_to_all;
            recorded nvshmemx_broadcastmem_on_stream(team: i32, to: Address, from: Address, count: usize, root: i32, stream: Address) => symmetric::broadcast;
            accepted nvshmemx_cumodule_finalize;
            accepted nvshmemx_cumodule_init;
            accepted nvshmemx_get_uniqueid;
            recorded nvshmemx_getmem_on_stream(to: Address, from: Address, bytes: usize, member: i32, stream: Address) -> () => symmetric::transfer;
            quiet nvshmemx_mc_ptr(team: i32, address: Address) -> Address => symmetric::multicast_pointer;
            recorded nvshmemx_putmem_on_stream(to: Address, from: Address, bytes: usize, member: i32, stream: Address) -> () => symmetric::transfer;
            accepted nvshmemx_putmem_signal_on_stream;
            accepted nvshmemx_set_attr_uniqueid_args;
            accepted nvshmemx_signal_wait_until_on_stream;
        }
    };
}

for_each_nvshmem!(rows);
