//! The private servers, against the programs themselves.

mod chaos;
mod postgres;
mod redis;
