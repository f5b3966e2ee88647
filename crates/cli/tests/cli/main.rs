//! The program as a user meets it: command lines in, exit codes, texts and files out.

mod calibrate;
mod estimate;
mod other;
mod run;
mod stage;
mod validate;
