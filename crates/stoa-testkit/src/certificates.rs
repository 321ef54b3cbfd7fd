//! Certificates for tests, made by the program `openssl`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a certificate is for, and the section of the configuration that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// A server that is reached as `localhost` or `127.0.0.1`.
    Server,
    /// A client.
    Client,
}

/// What kind a key is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// ECDSA.
    P256,
    /// ECDSA.
    P384,
    /// RSA of 2,048 bits.
    Rsa,
    /// Ed25519, whose signatures have no hash function of their own.
    Ed25519,
}

impl Key {
    /// Arguments of `openssl req` that make one.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::P256 => &["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
            Self::P384 => &["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1"],
            Self::Rsa => &["-nodes", "-newkey", "rsa:2048"],
            Self::Ed25519 => &["-nodes", "-newkey", "ed25519"],
        }
    }
}

/// A certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The file of the certificate.
    pub cert: PathBuf,
    /// The file of the key.
    pub key: PathBuf,
}

/// An authority that issues certificates, with its files in a folder.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    own: Certificate,
}

impl Authority {
    /// Makes one called `name`, with files of that name in `folder`.
    pub fn new(folder: &Path, name: &str) -> Self {
        Self::with_key(folder, name, Key::P256)
    }

    /// As [`Self::new`], with a key of this kind.
    pub fn with_key(folder: &Path, name: &str, key: Key) -> Self {
        let own = files(folder, name);
        let config = configuration(folder, name);
        openssl(
            Command::new("openssl")
                .args(["req", "-x509", "-new", "-days", "30", "-extensions", "authority"])
                .args(key.arguments())
                .arg("-config")
                .arg(&config)
                .arg("-keyout")
                .arg(&own.key)
                .arg("-out")
                .arg(&own.cert),
        );
        Self { folder: folder.to_owned(), own }
    }

    /// The file of its own certificate, which whoever trusts it has.
    pub fn cert(&self) -> &Path {
        &self.own.cert
    }

    /// Issues a certificate, with files called `name` beside the authority's.
    pub fn issue(&self, name: &str, usage: Usage) -> Certificate {
        self.issue_with(name, usage, Key::P256, "sha256")
    }

    /// As [`Self::issue`], for a key of this kind, signed with this hash function.
    pub fn issue_with(&self, name: &str, usage: Usage, key: Key, hash: &str) -> Certificate {
        let made = files(&self.folder, name);
        let config = configuration(&self.folder, name);
        let request = self.folder.join(format!("{name}.csr"));
        openssl(
            Command::new("openssl")
                .args(["req", "-new"])
                .args(key.arguments())
                .arg("-config")
                .arg(&config)
                .arg("-keyout")
                .arg(&made.key)
                .arg("-out")
                .arg(&request),
        );
        let section = match usage {
            Usage::Server => "server",
            Usage::Client => "client",
        };
        openssl(
            Command::new("openssl")
                .args(["x509", "-req", "-days", "30", "-CAcreateserial"])
                .arg(format!("-{hash}"))
                .args(["-extensions", section, "-extfile"])
                .arg(&config)
                .arg("-in")
                .arg(&request)
                .arg("-CA")
                .arg(&self.own.cert)
                .arg("-CAkey")
                .arg(&self.own.key)
                .arg("-out")
                .arg(&made.cert),
        );
        made
    }
}

/// The hash of a certificate as `openssl` computes it: what logins are bound to.
pub fn hash_of(cert: &Path, hash: &str) -> Vec<u8> {
    let der = cert.with_extension("der");
    openssl(
        Command::new("openssl")
            .args(["x509", "-outform", "der"])
            .arg("-in")
            .arg(cert)
            .arg("-out")
            .arg(&der),
    );
    openssl(Command::new("openssl").args(["dgst", "-binary"]).arg(format!("-{hash}")).arg(&der))
}

fn files(folder: &Path, name: &str) -> Certificate {
    Certificate {
        cert: folder.join(format!("{name}.crt")),
        key: folder.join(format!("{name}.key")),
    }
}

/// A configuration of its own: what a system has in its differs.
fn configuration(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(format!("{name}.cnf"));
    let text = format!(
        "[req]\nprompt = no\ndistinguished_name = subject\n\
         [subject]\nCN = {name}\n\
         [authority]\nbasicConstraints = critical, CA:TRUE\n\
         keyUsage = critical, keyCertSign, cRLSign\nsubjectKeyIdentifier = hash\n\
         [server]\nbasicConstraints = critical, CA:FALSE\nextendedKeyUsage = serverAuth\n\
         subjectAltName = DNS:localhost, IP:127.0.0.1\n\
         [client]\nbasicConstraints = critical, CA:FALSE\nextendedKeyUsage = clientAuth\n"
    );
    std::fs::write(&file, text).expect("the folder can be written to");
    file
}

/// What the program prints.
fn openssl(command: &mut Command) -> Vec<u8> {
    let done = command.output().expect("openssl runs (package openssl)");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}
