//! What is kept of a password: enough to check it, not enough to log in with it.
//!
//! In: a password and a salt, or PostgreSQL's text (`pg_authid.rolpassword`):
//!
//! ```text
//! SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>          salt and keys in base64
//!
//! SaltedPassword = PBKDF2-HMAC-SHA-256(password, salt, iterations)            RFC 5802, section 3
//! StoredKey      = SHA-256(HMAC(SaltedPassword, "Client Key"))
//! ServerKey      = HMAC(SaltedPassword, "Server Key")
//! ```
//!
//! Out: that text, whether a password is the right one, and the server's part of the exchange of
//! SCRAM-SHA-256 (RFC 7677).
//!
//! **Invariants:** comparisons take the same time wherever they fail; neither `Debug` nor an error
//! shows salt or keys (`Display` does: it is for storing). Not here: randomness for the salt, the
//! messages of the exchange, channel binding.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use stoa_error::{Error, Result};
use subtle::ConstantTimeEq;

const MECHANISM: &str = "SCRAM-SHA-256";
const KEY_BYTES: usize = 32;
const SALT_BYTES_MAX: usize = 1024;

type Key = [u8; KEY_BYTES];

/// The secret of a role's password, for SCRAM-SHA-256.
#[derive(Clone)]
pub struct ScramSecret {
    iterations: NonZeroU32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl ScramSecret {
    /// Iterations that PostgreSQL uses where nothing else is said (`scram_iterations`). One check
    /// of a password takes one to two milliseconds of a processor with them.
    pub const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();

    /// Most iterations: one check of a password takes a third of a second of a processor with them.
    pub const ITERATIONS_MAX: u32 = 1_000_000;

    /// Bytes of salt that PostgreSQL uses.
    pub const SALT_BYTES: usize = 16;

    /// Makes the secret of `password`. `salt` must be random, of [`Self::SALT_BYTES`] bytes, and
    /// new for each password.
    ///
    /// A password of ASCII characters is taken as it is. Any other is normalised with SASLprep
    /// (RFC 4013), and taken as it is where that refuses it: what PostgreSQL, libpq and the JDBC
    /// driver do, so that both sides agree.
    ///
    /// Computes for milliseconds: not for a thread that others wait for.
    pub fn from_password(password: &str, salt: &[u8], iterations: NonZeroU32) -> Self {
        let (stored_key, server_key) = keys(password, salt, iterations);
        Self { iterations, salt: salt.to_vec(), stored_key, server_key }
    }

    /// A secret that no password opens: for asking somebody who is not there for one all the same.
    /// `keys` must be as good as random.
    pub fn of_nobody(salt: &[u8], keys: [[u8; 32]; 2]) -> Self {
        let [stored_key, server_key] = keys;
        Self { iterations: Self::ITERATIONS, salt: salt.to_vec(), stored_key, server_key }
    }

    /// Whether a text means to be a secret, whatever is wrong with it: no password begins so.
    pub fn is_meant_by(text: &str) -> bool {
        text.strip_prefix(MECHANISM).is_some_and(|rest| rest.starts_with('$'))
    }

    /// Checks a secret that a client made: one of few iterations is as good as the password itself to
    /// whoever reads it.
    ///
    /// # Errors
    /// `Invalid` (22023) for fewer than [`Self::ITERATIONS`].
    pub fn check_iterations(&self) -> Result<()> {
        if self.iterations >= Self::ITERATIONS {
            return Ok(());
        }
        Err(Error::invalid(format!("the secret has {} iterations only", self.iterations))
            .with_hint(format!("{} to {} are taken", Self::ITERATIONS, Self::ITERATIONS_MAX)))
    }

    /// Whether `password` is the right one. Computes as long as [`Self::from_password`].
    pub fn verify(&self, password: &str) -> bool {
        let (stored_key, _) = keys(password, &self.salt, self.iterations);
        let is_same: bool = stored_key.ct_eq(&self.stored_key).into();
        // HMAC fills keys up with zeros: the same password with some at its end would be as good.
        is_same && !password.contains('\0')
    }

    /// Whether a client that sends `proof` knows the password. `auth_message` is what RFC 5802
    /// calls so: client-first-message-bare, server-first-message and
    /// client-final-message-without-proof, with commas between.
    pub fn accepts_proof(&self, auth_message: &[u8], proof: &[u8]) -> bool {
        let Ok(proof) = Key::try_from(proof) else { return false };
        let signature = hmac(&self.stored_key, auth_message);
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(byte, mask)| *byte ^= mask);
        sha256(&client_key).ct_eq(&self.stored_key).into()
    }

    /// What proves to the client that the server knows the secret.
    pub fn server_signature(&self, auth_message: &[u8]) -> [u8; 32] {
        hmac(&self.server_key, auth_message)
    }

    /// How often the hash was applied.
    pub fn iterations(&self) -> NonZeroU32 {
        self.iterations
    }

    /// The salt; the server sends it to whoever wants to log in.
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// What a client's proof is checked with.
    pub fn stored_key(&self) -> &[u8; 32] {
        &self.stored_key
    }

    /// What the server's signature is made with.
    pub fn server_key(&self) -> &[u8; 32] {
        &self.server_key
    }
}

/// Reads PostgreSQL's text.
///
/// # Errors
/// `Invalid` (22023), without the text, where it is none: a clear password then. Also for
/// more than 1,000,000 iterations or 1 KiB of salt.
impl FromStr for ScramSecret {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || {
            Error::invalid("this is not a SCRAM-SHA-256 secret").with_hint(
                "the form is SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>, \
                 with salt and keys in base64",
            )
        };
        let (iterations, salt, stored_key, server_key) = split(text).ok_or_else(malformed)?;
        let iterations: NonZeroU32 = iterations.parse().map_err(|_| malformed())?;
        let salt = STANDARD.decode(salt).map_err(|_| malformed())?;
        if iterations.get() > Self::ITERATIONS_MAX || salt.is_empty() || salt.len() > SALT_BYTES_MAX
        {
            return Err(malformed().with_detail(format!(
                "at most {} iterations and 1 to {SALT_BYTES_MAX} bytes of salt",
                Self::ITERATIONS_MAX
            )));
        }
        let key = |text| STANDARD.decode(text).ok().and_then(|bytes| Key::try_from(bytes).ok());
        Ok(Self {
            iterations,
            salt,
            stored_key: key(stored_key).ok_or_else(malformed)?,
            server_key: key(server_key).ok_or_else(malformed)?,
        })
    }
}

/// PostgreSQL's text, for storing: it shows all there is.
impl fmt::Display for ScramSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored_key, server_key] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|b| STANDARD.encode(b));
        write!(f, "{MECHANISM}${}:{salt}${stored_key}:{server_key}", self.iterations)
    }
}

impl fmt::Debug for ScramSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramSecret").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl PartialEq for ScramSecret {
    fn eq(&self, other: &Self) -> bool {
        let same_keys =
            self.stored_key.ct_eq(&other.stored_key) & self.server_key.ct_eq(&other.server_key);
        self.iterations == other.iterations && self.salt == other.salt && same_keys.into()
    }
}

impl Eq for ScramSecret {}

/// Iterations, salt, StoredKey and ServerKey, still as text.
fn split(text: &str) -> Option<(&str, &str, &str, &str)> {
    let text = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
    let (first, keys) = text.split_once('$')?;
    let (iterations, salt) = first.split_once(':')?;
    let (stored_key, server_key) = keys.split_once(':')?;
    Some((iterations, salt, stored_key, server_key))
}

/// StoredKey and ServerKey.
fn keys(password: &str, salt: &[u8], iterations: NonZeroU32) -> (Key, Key) {
    let password = prepared(password);
    let salted: Key =
        pbkdf2::pbkdf2_hmac_array::<Sha256, KEY_BYTES>(password.as_bytes(), salt, iterations.get());
    (sha256(&hmac(&salted, b"Client Key")), hmac(&salted, b"Server Key"))
}

/// The password as both sides hash it.
fn prepared(password: &str) -> Cow<'_, str> {
    if password.is_ascii() {
        return Cow::Borrowed(password);
    }
    stringprep::saslprep(password).unwrap_or(Cow::Borrowed(password))
}

fn hmac(key: &Key, message: &[u8]) -> Key {
    // HMAC fills a key up to a block with zeros (RFC 2104); done here, nothing can fail.
    let mut block = [0; 2 * KEY_BYTES];
    block[..KEY_BYTES].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(message);
    mac.finalize().into_bytes().into()
}

fn sha256(bytes: &Key) -> Key {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests;
