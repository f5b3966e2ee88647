//! Kernels as their mangled names and launch parameters describe them.
//!
//! [`Name`] is a parsed demangled name: base name, template arguments, parameter types. [`Parameters`] are the values
//! of one launch. [`types`] reads element types out of C++ type names, and [`short`] writes names for people.

pub(crate) mod name;
pub(crate) mod parameters;
pub(crate) mod short;
pub(crate) mod types;

pub(crate) use name::Name;
pub(crate) use parameters::Parameters;
