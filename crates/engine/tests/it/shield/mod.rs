//! The shield between servers: its scripts against their promises and a model, what is left of it when
//! Redis is flushed, killed, stopped or slow, and sales in which all of that happens.

mod bench;
mod engine;
mod model;
mod planted;
mod redis;
mod sale;
mod scripts;
