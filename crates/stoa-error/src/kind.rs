//! The kinds of errors, by what the caller should do, and their codes.

/// What the caller can do about an error. Maps once per protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is wrong; change it.
    Invalid,
    /// The request is well-formed, but Stoa does not do this.
    Unsupported,
    /// The thing named does not exist.
    NotFound,
    /// The thing to be made exists already.
    AlreadyExists,
    /// The caller may not do this.
    Forbidden,
    /// Somebody else changed the same thing; read again and retry.
    Conflict,
    /// A limit is reached (memory, slots, disk); retry later or ask for less.
    Exhausted,
    /// A part that is needed does not answer now; retry later.
    Unavailable,
    /// The caller, or an administrator, cancelled it.
    Cancelled,
    /// It took longer than it may.
    Timeout,
    /// Stored bytes are damaged; somebody must look.
    Corrupt,
    /// A bug in Stoa; please report.
    Internal,
}

impl ErrorKind {
    /// The name as users see it in logs and JSON, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unsupported => "unsupported",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Forbidden => "forbidden",
            Self::Conflict => "conflict",
            Self::Exhausted => "exhausted",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Corrupt => "corrupt",
            Self::Internal => "internal",
        }
    }

    /// The SQLSTATE of this kind where no more exact one is known (PostgreSQL, appendix A).
    pub fn sqlstate(self) -> &'static str {
        match self {
            Self::Invalid => "22023",
            Self::Unsupported => "0A000",
            Self::NotFound => "42704",
            Self::AlreadyExists => "42710",
            Self::Forbidden => "42501",
            Self::Conflict => "40001",
            Self::Exhausted => "53000",
            Self::Unavailable => "57P03",
            Self::Cancelled | Self::Timeout => "57014",
            Self::Corrupt => "XX001",
            Self::Internal => "XX000",
        }
    }

    /// The HTTP status of this kind.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unsupported => 501,
            Self::NotFound => 404,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Forbidden => 403,
            Self::Exhausted => 429,
            Self::Unavailable => 503,
            Self::Cancelled => 499,
            Self::Timeout => 504,
            Self::Corrupt | Self::Internal => 500,
        }
    }

    /// The status code of gRPC for this kind.
    pub fn grpc_code(self) -> i32 {
        match self {
            Self::Cancelled => 1,
            Self::Invalid => 3,
            Self::Timeout => 4,
            Self::NotFound => 5,
            Self::AlreadyExists => 6,
            Self::Forbidden => 7,
            Self::Exhausted => 8,
            Self::Conflict => 10,
            Self::Unsupported => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::Corrupt => 15,
        }
    }

    /// Whether the same request may succeed later without a change.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::Exhausted | Self::Unavailable | Self::Timeout)
    }
}
