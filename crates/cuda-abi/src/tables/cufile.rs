//! cuFile.

/// Hands the rows of cuFile to the macro `$with`.
#[macro_export]
macro_rules! for_each_cufile {
    ($with:ident) => {
        $with! {
            accepted cuFileBufDeregister;
            accepted cuFileBufRegister;
            accepted cuFileHandleDeregister;
            accepted cuFileHandleRegister;
            accepted cuFileRead;
            accepted cuFileWrite;
        }
    };
}

for_each_cufile!(rows);
