//! Logging in with SCRAM-SHA-256: RFC 5802 and 7677, in PostgreSQL's SASL messages.
//!
//! In: the role that a client says it is, and what is kept of that role's password. Out: whether the
//! client knows it. The password itself is never sent.
//!
//! Not here: what is kept of a password, and how a proof is checked (`stoa-access`).

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use stoa_access::ScramSecret;
use stoa_env::random;
use stoa_error::{Error, Result};
use stoa_query::{Engine, login_error};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::wire::frontend::{read_sasl_initial, violation};
use crate::wire::stream::{Stop, Wire};

const MECHANISM: &str = "SCRAM-SHA-256";

/// Lets the client at `peer` prove that it is `role`.
///
/// # Errors
/// 28P01 where it does not; 53400 where too many have failed to before; 08P01 where it says something else than SCRAM has.
pub(crate) async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    engine: &Engine,
    role: &str,
    peer: Option<IpAddr>,
) -> Result<(), Stop> {
    engine.may_try_login(role, peer)?;
    wire.output.authentication_sasl(&[MECHANISM]);
    wire.flush().await?;
    let (mechanism, first) = read_sasl_initial(wire.login().await?)?;
    if mechanism != MECHANISM {
        return Err(violation(format!("login by {mechanism} is not offered"))
            .with_hint(format!("the server offers {MECHANISM}"))
            .into());
    }
    // Whoever is not there is asked all the same, so that nobody learns who is.
    let (secret, is_there) = engine.login_secret(role).await?;
    let nonce = STANDARD.encode(random::bytes::<18>());
    let exchange = Exchange::begin(text_of(&first)?, &nonce, secret)?;
    wire.output.authentication_sasl_data(&exchange.server_first, false);
    wire.flush().await?;
    let last = wire.login().await?;
    let proof = exchange.finish(text_of(&last)?)?.filter(|_| is_there);
    engine.judge_login(role, peer, proof.is_some())?;
    match proof {
        Some(proof) => wire.output.authentication_sasl_data(&proof, true),
        None => return Err(login_error(role).into()),
    }
    Ok(())
}

fn text_of(message: &Bytes) -> Result<&str> {
    std::str::from_utf8(message).map_err(|_| malformed("is no UTF-8"))
}

fn malformed(what: &str) -> Error {
    violation(format!("malformed SCRAM message: it {what}"))
}

/// An exchange after the client's first message.
struct Exchange {
    secret: ScramSecret,
    /// The client's header on channel binding, as it must come again.
    header: String,
    client_first_bare: String,
    server_first: String,
    /// Client's and server's together.
    nonce: String,
}

impl Exchange {
    fn begin(client_first: &str, server_nonce: &str, secret: ScramSecret) -> Result<Self> {
        let mut parts = client_first.splitn(3, ',');
        let (flag, identity, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(flag), Some(identity), Some(bare)) = (flag, identity, bare) else {
            return Err(malformed("ends early"));
        };
        // "y": the client could bind the channel and believes that the server cannot, which is so.
        if !matches!(flag, "n" | "y") {
            return Err(malformed("asks for channel binding, which is not offered"));
        }
        let attributes = bare.split(',');
        let nonce = attributes.filter_map(|part| part.strip_prefix("r=")).next();
        let nonce = nonce.filter(|nonce| !nonce.is_empty() && bare.starts_with("n="));
        let nonce = nonce.ok_or_else(|| malformed("has no nonce"))?;
        let nonce = format!("{nonce}{server_nonce}");
        let salt = STANDARD.encode(secret.salt());
        let server_first = format!("r={nonce},s={salt},i={}", secret.iterations());
        Ok(Self {
            header: format!("{flag},{identity},"),
            client_first_bare: bare.to_owned(),
            server_first,
            nonce,
            secret,
        })
    }

    /// What the server says last; `None` where the client does not know the password.
    fn finish(&self, client_final: &str) -> Result<Option<String>> {
        let (without_proof, proof) =
            client_final.rsplit_once(",p=").ok_or_else(|| malformed("has no proof"))?;
        let proof = STANDARD.decode(proof).map_err(|_| malformed("has a proof in no base64"))?;
        let expected = format!("c={},r={}", STANDARD.encode(&self.header), self.nonce);
        if without_proof != expected {
            return Err(malformed("is of another exchange"));
        }
        let message = format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        if !self.secret.accepts_proof(message.as_bytes(), &proof) {
            return Ok(None);
        }
        let signature = self.secret.server_signature(message.as_bytes());
        Ok(Some(format!("v={}", STANDARD.encode(signature))))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn the_exchange_of_the_standard_is_accepted() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let iterations = NonZeroU32::new(4096).unwrap();
        let secret = ScramSecret::from_password("pencil", &salt, iterations);
        let begin =
            |first: &str| Exchange::begin(first, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", secret.clone());
        let exchange = begin("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(
            exchange.server_first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let proof = exchange.finish(last).unwrap();
        assert_eq!(proof.unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let wrong = last.replace("p=dHz", "p=dHy");
        assert_eq!(exchange.finish(&wrong).unwrap(), None);
        assert!(exchange.finish(&last.replace("r=rO", "r=rP")).is_err());
        assert!(exchange.finish(&last.replace("c=biws", "c=eSws")).is_err());
        for first in ["", "n,,", "p=tls-exporter,,n=,r=abc", "n,,n=user", "n,,r=abc"] {
            assert!(begin(first).is_err(), "{first}");
        }
    }
}
