//! What a store's refusal means and what to do about it.

use stoa_error::ErrorKind;

/// A refusal that users meet.
pub(crate) struct Explanation {
    pub(crate) kind: ErrorKind,
    pub(crate) what: String,
    pub(crate) hint: String,
}

const KEYS: &str = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile AWS_PROFILE, or \
                    s3_access_key_id and s3_secret_access_key";
const ENDPOINT: &str = "check s3_endpoint (or AWS_ENDPOINT_URL_S3), the network and any proxy";

/// Error codes of S3 (`<Code>…</Code>`), and what `object_store` says where there is no answer.
#[rustfmt::skip]
const KNOWN: &[(&str, ErrorKind, &str, &str)] = &[
    ("<Code>NoSuchBucket<", ErrorKind::NotFound, "there is no such bucket",
        "check the name, or make the bucket; with another store than Amazon's, set s3_endpoint"),
    ("<Code>InvalidAccessKeyId<", ErrorKind::Forbidden, "the store does not know the access key", KEYS),
    ("<Code>XAdminUserNotFound<", ErrorKind::Forbidden, "the store does not know the access key", KEYS),
    ("<Code>SignatureDoesNotMatch<", ErrorKind::Forbidden, "the secret key is wrong", KEYS),
    ("<Code>ExpiredToken<", ErrorKind::Forbidden, "the temporary keys have expired",
        "get new ones (aws sso login, aws sts …) and start again"),
    ("<Code>InvalidToken<", ErrorKind::Forbidden, "the session token is not valid",
        "check AWS_SESSION_TOKEN; unset it where the keys are not temporary"),
    ("<Code>AccessDenied<", ErrorKind::Forbidden, "access is denied",
        "the keys are valid but may not do this: they need s3:ListBucket on the bucket and \
         s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload on what is in it"),
    ("<Code>RequestTimeTooSkewed<", ErrorKind::Forbidden, "this machine's clock is wrong",
        "set the clock (NTP)"),
    ("<Code>SlowDown<", ErrorKind::Unavailable, "the store asks to slow down, again and again",
        "try later; fewer threads send fewer requests"),
    ("incorrectly configured region", ErrorKind::Invalid, "the bucket is in another region",
        "set AWS_REGION or s3_region to the bucket's region"),
    ("<Code>PermanentRedirect<", ErrorKind::Invalid, "the bucket is in another region",
        "set AWS_REGION or s3_region to the bucket's region"),
    ("<Code>AuthorizationHeaderMalformed<", ErrorKind::Invalid, "the region is wrong",
        "set AWS_REGION or s3_region to the bucket's region"),
    ("status code: 401 ", ErrorKind::Forbidden, "the store refuses the credentials", KEYS),
    ("status code: 403 ", ErrorKind::Forbidden, "access is denied", KEYS),
    ("/latest/api/token", ErrorKind::Forbidden, "there are no credentials, and this is no EC2 instance",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE)"),
    ("/latest/meta-data/", ErrorKind::Forbidden, "the EC2 instance has no role",
        "give it one, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ("certificate", ErrorKind::Unavailable, "the store's certificate is not trusted",
        "add its authority to the system's certificates, or name a file in SSL_CERT_FILE"),
    ("dns error", ErrorKind::Unavailable, "the store's host name cannot be found", ENDPOINT),
    ("Connection refused", ErrorKind::Unavailable, "nobody listens at the store's address", ENDPOINT),
    ("Network is unreachable", ErrorKind::Unavailable, "there is no route to the store", ENDPOINT),
    ("operation timed out", ErrorKind::Unavailable, "the store did not answer in time", ENDPOINT),
    ("tcp connect error", ErrorKind::Unavailable, "the store cannot be reached", ENDPOINT),
];

/// Explains an error of an object store, if it is one that users meet.
pub(crate) fn explain(error: &object_store::Error) -> Option<Explanation> {
    let text = whole_text(error);
    let (_, kind, what, hint) = KNOWN.iter().find(|(sign, ..)| text.contains(sign))?;
    let region = element(&text, "Region").filter(|_| *kind == ErrorKind::Invalid);
    let (what, hint) = match region {
        Some(region) => (
            format!("the bucket is in {region}"),
            format!("set AWS_REGION or s3_region to {region}"),
        ),
        None => ((*what).to_owned(), (*hint).to_owned()),
    };
    Some(Explanation { kind: *kind, what, hint })
}

/// Whether a listing was answered with a bare 404, as some stores do where there is no bucket.
pub(crate) fn is_bare_404(error: &object_store::Error) -> bool {
    whole_text(error).contains("status code: 404 ") && !whole_text(error).contains("<Code>")
}

/// Whether a request went out and its answer did not come back.
pub(crate) fn is_lost(error: &object_store::Error) -> bool {
    let text = whole_text(error);
    text.contains("HTTP error") && !text.contains("tcp connect error")
}

/// The texts of an error and its sources.
fn whole_text(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push('\n');
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.find(&format!("<{name}>"))? + name.len() + 2;
    let rest = text.get(start..)?;
    rest.get(..rest.find('<')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, kind: ErrorKind, what: &str) {
        let error = object_store::Error::Generic { store: "S3", source: text.into() };
        let found = explain(&error).unwrap();
        assert_eq!((found.kind, found.what.as_str()), (kind, what), "{text}");
    }

    #[test]
    fn refusals_are_explained() {
        check("404: <Code>NoSuchBucket</Code>", ErrorKind::NotFound, "there is no such bucket");
        check(
            "<Code>SignatureDoesNotMatch</Code>",
            ErrorKind::Forbidden,
            "the secret key is wrong",
        );
        check(
            "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>",
            ErrorKind::Invalid,
            "the bucket is in eu-west-1",
        );
        check("tcp connect error", ErrorKind::Unavailable, "the store cannot be reached");
    }

    #[test]
    fn a_missing_answer_is_told_from_a_missing_store() {
        let error = |text: &str| object_store::Error::Generic { store: "S3", source: text.into() };
        assert!(is_lost(&error("HTTP error: connection closed before message completed")));
        assert!(!is_lost(&error("HTTP error: tcp connect error")));
        assert!(is_bare_404(&error("status code: 404 ")));
        assert!(!is_bare_404(&error("status code: 404 <Code>NoSuchKey</Code>")));
    }

    #[test]
    fn others_are_left_alone() {
        let error = object_store::Error::Generic { store: "S3", source: "hm".into() };
        assert!(explain(&error).is_none());
    }
}
