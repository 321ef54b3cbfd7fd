//! How to reach S3.

use std::fmt;

use crate::Prices;

/// How to reach S3 or what speaks its protocol; the same for all buckets of a process.
#[derive(Clone, Debug, Default)]
pub struct S3Options {
    /// `https://host:port`; `None` is Amazon's.
    pub endpoint: Option<String>,
    /// The buckets' region; `None` is `us-east-1`, which most other stores take.
    pub region: Option<String>,
    /// Who asks.
    pub credentials: Credentials,
    /// Whether the bucket's name is the first part of the path rather than of the host; `None` is
    /// `true` with an endpoint, and for names with dots, which no certificate covers.
    pub path_style: Option<bool>,
    /// Whether an endpoint elsewhere may be plain HTTP.
    pub allow_http: bool,
    /// What requests cost.
    pub prices: Prices,
}

/// Who asks, or who says so.
#[derive(Clone, Debug, Default)]
pub enum Credentials {
    /// These keys.
    Keys {
        /// Names the key; no secret.
        access_key_id: String,
        /// Signs requests.
        secret_access_key: Secret,
        /// With temporary keys.
        session_token: Option<Secret>,
    },
    /// A role, with a token from a file that somebody renews (EKS service accounts, OIDC).
    WebIdentity {
        /// The file.
        token_file: String,
        /// The role.
        role_arn: String,
        /// Its name in the audit log.
        session_name: Option<String>,
    },
    /// ECS: the task's role.
    Task {
        /// `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI`.
        relative_uri: String,
    },
    /// EKS Pod Identity.
    Pod {
        /// `AWS_CONTAINER_CREDENTIALS_FULL_URI`.
        full_uri: String,
        /// `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE`.
        token_file: String,
    },
    /// The role of the EC2 instance, from its metadata service.
    #[default]
    Machine,
    /// None can be had; opening a bucket fails and says why.
    Missing {
        /// Why.
        why: String,
    },
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
