//! The private servers, against the programs themselves.

mod chaos;
mod netns;
mod postgres;
mod redis;
