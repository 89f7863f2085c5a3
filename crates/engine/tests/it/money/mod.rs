//! From a hold to its money and back, with a provider that does as it is told, on every ledger: what
//! was taken less what went back is what confirmed bookings cost, to the cent.

mod deaths;
mod hostile;
mod mortal;
mod refused;
mod rig;
mod rounds;
mod walks;
