//! cuFile.

/// Hands the rows of cuFile to the macro `$with`.
#[macro_export]
macro_rules! for_each_cufile {
    ($with:ident) => {
        $with! {
            recorded cuFileBufDeregister(buffer: Address) -> u64 => file::deregister_buffer;
            recorded cuFileBufRegister(buffer: Address, bytes: usize, flags: i32) -> u64 => file::register_buffer;
            recorded cuFileDriverClose() -> u64 => file::driver;
            recorded cuFileDriverOpen() -> u64 => file::driver;
            quiet cuFileGetVersion(version: Out<i32>) -> u64 => file::version;
            recorded cuFileHandleDeregister(handle: Address) -> () => file::deregister;
            recorded cuFileHandleRegister(handle: Out<u64>, description: Address) -> u64 => file::register;
            recorded cuFileRead(handle: Address, buffer: Address, bytes: usize, file_offset: i64, buffer_offset: i64) -> i64 => file::read;
            recorded cuFileWrite(handle: Address, buffer: Address, bytes: usize, file_offset: i64, buffer_offset: i64) -> i64 => file::write;
        }
    };
}

for_each_cufile!(rows);
