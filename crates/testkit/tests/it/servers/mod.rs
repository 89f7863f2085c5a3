//! The private servers, against the programs themselves.

mod chaos;
mod netns;
mod player;
mod postgres;
mod redis;
