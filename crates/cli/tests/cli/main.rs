//! The program as a user meets it: command lines in, exit codes, texts and files out.

mod other;
mod run;
mod stage;
