//! TLS of a private Redis: its own certificate, and whose certificates it takes.

use std::fs;

use anyhow::Result;

use crate::server::Folder;
use crate::{Authority, Certificate};

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// They may.
    Optional,
    /// They must.
    Required,
}

/// The server's certificate, and whether and by whom clients must be certified.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub(super) own: Certificate,
    pub(super) authority: String,
    pub(super) clients: ClientCertificate,
}

impl Tls {
    pub(super) fn new(own: &Certificate, by: &Authority, clients: ClientCertificate) -> Self {
        Self {
            own: own.clone(),
            authority: by.pem(),
            clients,
        }
    }

    /// Writes the files, and adds the lines that name them.
    pub(super) fn write(&self, folder: &Folder, add: &mut impl FnMut(&str, &str)) -> Result<()> {
        let [own, key] = self.own.write(folder.path(), "own")?;
        let authority = folder.join("authority.crt");
        fs::write(&authority, &self.authority)?;
        let clients = match self.clients {
            ClientCertificate::Optional => "optional",
            ClientCertificate::Required => "yes",
        };
        add("tls-cert-file", &own.display().to_string());
        add("tls-key-file", &key.display().to_string());
        add("tls-ca-cert-file", &authority.display().to_string());
        add("tls-auth-clients", clients);
        Ok(())
    }
}
