//! Logging in with SCRAM-SHA-256: RFC 5802 and 7677, in PostgreSQL's SASL messages.
//!
//! In: the role that a client says it is, and what is kept of that role's password. Out: whether the
//! client knows it. The password itself is never sent.
//!
//! On an encrypted connection a client can bind the login to the server's certificate
//! (SCRAM-SHA-256-PLUS, `tls-server-end-point`): what it sends is worth nothing then to somebody who
//! stands between with another certificate.
//!
//! Not here: what is kept of a password, and how a proof is checked (`stoa-access`).

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use stoa_access::ScramSecret;
use stoa_env::random;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_query::{Engine, login_error};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::wire::frontend::{read_sasl_initial, violation};
use crate::wire::stream::{Stop, Wire};

const MECHANISM: &str = "SCRAM-SHA-256";
const BINDING_MECHANISM: &str = "SCRAM-SHA-256-PLUS";
/// A client's word that it binds the login, and to what.
const BINDING_FLAG: &str = "p=tls-server-end-point";

/// Lets the client at `peer` prove that it is `role`; `end_point` is what a login can be bound to.
///
/// # Errors
/// 28P01 where it does not; 53400 where too many have failed to before; 28000 where the login is bound to
/// another certificate; 08P01 where it says something else than SCRAM has.
pub(crate) async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    engine: &Engine,
    role: &str,
    peer: Option<IpAddr>,
    end_point: Option<Vec<u8>>,
) -> Result<(), Stop> {
    engine.may_try_login(role, peer)?;
    let offered: &[&str] = match &end_point {
        Some(_) => &[BINDING_MECHANISM, MECHANISM],
        None => &[MECHANISM],
    };
    wire.output.authentication_sasl(offered);
    wire.flush().await?;
    let (mechanism, first) = read_sasl_initial(wire.login().await?)?;
    if !offered.contains(&mechanism.as_str()) {
        return Err(violation(format!("login by {mechanism} is not offered"))
            .with_hint(format!("the server offers {}", offered.join(", ")))
            .into());
    }
    let channel = match end_point {
        Some(end_point) if mechanism == BINDING_MECHANISM => Channel::Bound(end_point),
        Some(_) => Channel::NotBound,
        None => Channel::CannotBind,
    };
    // Whoever is not there is asked all the same, so that nobody learns who is.
    let (secret, is_there) = engine.login_secret(role).await?;
    let nonce = STANDARD.encode(random::bytes::<18>());
    let exchange = Exchange::begin(text_of(&first)?, &nonce, secret, &channel)?;
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

/// Which mechanism the client has chosen, of those that were offered.
#[derive(Debug)]
enum Channel {
    /// To bind the login to this.
    Bound(Vec<u8>),
    /// Not to, though it could have.
    NotBound,
    /// Binding was not offered.
    CannotBind,
}

impl Channel {
    /// Whether what the client says of binding fits the mechanism.
    fn check(&self, flag: &str) -> Result<()> {
        match (self, flag) {
            (Self::Bound(_), BINDING_FLAG)
            | (Self::NotBound | Self::CannotBind, "n")
            // The client could bind and believes that the server cannot, which is so.
            | (Self::CannotBind, "y") => Ok(()),
            // Somebody has taken it out of the offer.
            (Self::NotBound, "y") => Err(refused(
                "the client believes that the server cannot bind a login to its certificate, \
                 but the server offered it",
            )),
            (Self::Bound(_), "n" | "y") => Err(malformed("binds no channel, which was chosen")),
            (Self::Bound(_), _) => Err(malformed("binds to something else than was offered")),
            _ => Err(malformed("asks for channel binding, which was not chosen")),
        }
    }

    fn end_point(&self) -> &[u8] {
        match self {
            Self::Bound(end_point) => end_point,
            Self::NotBound | Self::CannotBind => &[],
        }
    }
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Forbidden, message)
        .with_condition(Condition::InvalidAuthorization)
        .with_hint(
            "somebody may stand between client and server; else look for a proxy that ends TLS",
        )
}

/// An exchange after the client's first message.
struct Exchange {
    secret: ScramSecret,
    /// What the client has said of channel binding, and what it binds to, as it must come again.
    binding: Vec<u8>,
    client_first_bare: String,
    server_first: String,
    /// Client's and server's together.
    nonce: String,
}

impl Exchange {
    fn begin(
        client_first: &str,
        server_nonce: &str,
        secret: ScramSecret,
        channel: &Channel,
    ) -> Result<Self> {
        let mut parts = client_first.splitn(3, ',');
        let (flag, identity, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(flag), Some(identity), Some(bare)) = (flag, identity, bare) else {
            return Err(malformed("ends early"));
        };
        channel.check(flag)?;
        let attributes = bare.split(',');
        let nonce = attributes.filter_map(|part| part.strip_prefix("r=")).next();
        let nonce = nonce.filter(|nonce| !nonce.is_empty() && bare.starts_with("n="));
        let nonce = nonce.ok_or_else(|| malformed("has no nonce"))?;
        let nonce = format!("{nonce}{server_nonce}");
        let salt = STANDARD.encode(secret.salt());
        let server_first = format!("r={nonce},s={salt},i={}", secret.iterations());
        Ok(Self {
            binding: [format!("{flag},{identity},").as_bytes(), channel.end_point()].concat(),
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
        let (binding, nonce) = without_proof
            .strip_prefix("c=")
            .and_then(|rest| rest.split_once(",r="))
            .ok_or_else(|| malformed("has no channel binding"))?;
        if nonce != self.nonce {
            return Err(malformed("is of another exchange"));
        }
        if binding != STANDARD.encode(&self.binding) {
            return Err(refused("the login is bound to another certificate than the server's"));
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
        let begin = |first: &str| {
            let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
            Exchange::begin(first, nonce, secret.clone(), &Channel::CannotBind)
        };
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

    fn few_iterations() -> ScramSecret {
        ScramSecret::from_password("pencil", b"salt", NonZeroU32::new(2).unwrap())
    }

    #[test]
    fn what_the_client_says_of_binding_fits_what_was_offered() {
        let check = |channel: &Channel, flag: &str, expected: &str| {
            let first = format!("{flag},,n=,r=abc");
            let found = Exchange::begin(&first, "def", few_iterations(), channel);
            let found = found.map_or_else(|error| error.sqlstate(), |_| "");
            assert_eq!(found, expected, "{channel:?} {flag}");
        };
        let (bound, plain, none) =
            (Channel::Bound(vec![1, 2]), Channel::NotBound, Channel::CannotBind);
        check(&bound, "p=tls-server-end-point", "");
        check(&bound, "p=tls-unique", "08P01");
        check(&bound, "y", "08P01");
        check(&bound, "n", "08P01");
        check(&plain, "n", "");
        check(&plain, "y", "28000");
        check(&plain, "p=tls-server-end-point", "08P01");
        check(&none, "n", "");
        check(&none, "y", "");
        check(&none, "p=tls-server-end-point", "08P01");
    }

    #[test]
    fn a_login_is_bound_to_one_certificate() {
        let begin = |end_point: &[u8]| {
            let first = "p=tls-server-end-point,,n=,r=abc";
            let channel = Channel::Bound(end_point.to_vec());
            Exchange::begin(first, "def", few_iterations(), &channel).unwrap()
        };
        // The client has seen the certificate [1, 2]; its proof does not matter before that.
        let header = [&b"p=tls-server-end-point,,"[..], &[1, 2]].concat();
        let last = format!("c={},r=abcdef,p=AA==", STANDARD.encode(header));
        assert_eq!(begin(&[1, 2]).finish(&last).unwrap(), None);
        assert_eq!(begin(&[1, 3]).finish(&last).unwrap_err().sqlstate(), "28000");
    }
}
