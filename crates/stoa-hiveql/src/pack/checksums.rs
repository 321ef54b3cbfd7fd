//! Checksums and digests.

use sha2::Digest;
use stoa_error::Result;

use super::texts::bytes;
use super::value::{Type, Value};
use super::{Function, lenient, makes_bigint, makes_int, makes_text, strict, whole};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_md5", (1, 1), makes_text, |v| Ok(shown(&md5::Md5::digest(&bytes(v, 0)?)))),
    strict("hive_sha", (1, 1), makes_text, |v| Ok(shown(&sha1::Sha1::digest(&bytes(v, 0)?)))),
    strict("hive_sha2", (2, 2), makes_text, |v| {
        let of = bytes(v, 0)?;
        Ok(match whole(v, 1)? {
            Some(0 | 256) => shown(&sha2::Sha256::digest(&of)),
            Some(224) => shown(&sha2::Sha224::digest(&of)),
            Some(384) => shown(&sha2::Sha384::digest(&of)),
            Some(512) => shown(&sha2::Sha512::digest(&of)),
            _ => Value::Null,
        })
    }),
    strict("hive_crc32", (1, 1), makes_bigint, |v| {
        let mut crc = flate2::Crc::new();
        crc.update(&bytes(v, 0)?);
        Ok(Value::Bigint(i64::from(crc.sum())))
    }),
    lenient("hive_hash", (1, 255), hash_type, |v| {
        let all = v.iter().try_fold(0_i32, |all, value| {
            Ok::<_, stoa_error::Error>(all.wrapping_mul(31).wrapping_add(hash(value)?))
        });
        all.map(Value::Int)
    }),
];

fn shown(bytes: &[u8]) -> Value {
    Value::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Timestamps and decimals hash by their form in memory, which no document says.
fn hash_type(types: &[Type]) -> Result<Type> {
    let is_known = |of: &Type| {
        matches!(
            of,
            Type::Null
                | Type::Boolean
                | Type::Int
                | Type::Bigint
                | Type::Double
                | Type::Text
                | Type::Date
        )
    };
    if types.iter().all(is_known) {
        makes_int(types)
    } else {
        Err(super::no_function("hash", types))
    }
}

/// `ObjectInspectorUtils.hashCode` of Hive: those of Java, of texts over their bytes.
fn hash(value: &Value) -> Result<i32> {
    let of_long = |x: i64| (x ^ ((x as u64) >> 32) as i64) as i32;
    Ok(match value {
        Value::Boolean(x) => i32::from(*x),
        Value::Int(x) => *x,
        Value::Bigint(x) => of_long(*x),
        Value::Double(x) => of_long(if *x == 0.0 { 0 } else { x.to_bits() as i64 }),
        Value::Text(text) => text
            .bytes()
            .fold(0_i32, |all, byte| all.wrapping_mul(31).wrapping_add(i32::from(byte as i8))),
        Value::Date(days) => *days,
        _ => 0,
    })
}
