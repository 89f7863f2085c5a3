//! The one cryptography of TLS in this process.

/// TLS is rustls with ring, as everywhere here; reqwest asks the process for it and panics when no one
/// has chosen.
pub(crate) fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have chosen meanwhile.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
    }
}
