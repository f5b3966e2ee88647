//! Readers and writers of other tools' formats.
