//! The private servers, against the programs themselves.

mod postgres;
mod redis;
