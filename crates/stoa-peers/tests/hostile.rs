//! Bytes that no daemon would send: to the port, and from a member that has lost its mind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::time::Duration;

use common::raw::{Raw, frame, hello};
use common::{LONG, Membership, echo, holder, id, two};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stoa_env::{task, timer};
use stoa_peers::{PeerOptions, is_unreachable};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn options() -> PeerOptions {
    PeerOptions {
        open_timeout: Duration::from_secs(1),
        ping_interval: Duration::from_millis(100),
        ping_timeout: Duration::from_millis(100),
        retry_min: Duration::ZERO,
        ..PeerOptions::default()
    }
}

/// Says something, says no more, and waits until the other side has had enough.
async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Vec<u8> {
    let talk = async {
        // The other side may have gone in the middle.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        answer
    };
    timer::timeout(LONG, talk).await.expect("the connection ends")
}

fn random_bytes(random: &mut SmallRng, length_max: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.random_range(0..=length_max)];
    random.fill(bytes.as_mut_slice());
    bytes
}

/// Frames, most of which make sense, and then some that do not.
fn random_frames(random: &mut SmallRng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.random_range(0..6) {
        let body = random_bytes(random, 300);
        let length = match random.random_range(0..8) {
            0 => random.random(),
            1 => random.random_range(0..1000),
            _ => u32::try_from(body.len()).unwrap(),
        };
        let kind = random.random_range(0..8);
        bytes.extend(frame(length, kind, random.random(), random.random_range(0..4), &body));
    }
    if random.random_bool(0.3) {
        bytes.extend(random_bytes(random, 100));
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_at_the_port_is_survived() {
    let (_, one, two) = two(options(), echo()).await;
    let talks = (0..200).map(|seed| {
        let address = two.address.clone();
        task::spawn(async move {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut bytes = random_bytes(&mut random, 5000);
            if random.random_bool(0.7) {
                // It looks like TLS at first.
                let mut record = vec![0x16, 3, random.random_range(0..5)];
                let length: u16 = match random.random_bool(0.5) {
                    true => random.random(),
                    false => bytes.len() as u16,
                };
                record.extend_from_slice(&length.to_be_bytes());
                record.extend_from_slice(&[1, 0]);
                record.append(&mut bytes);
                bytes = record;
            }
            say(TcpStream::connect(address).await.unwrap(), &bytes).await
        })
    });
    for talk in futures::future::join_all(talks).await {
        let answer = talk.unwrap();
        // An alert of TLS at most.
        assert!(answer.len() < 100, "{answer:?}");
    }
    assert_eq!(one.call(id(2), 0, "x").await.unwrap(), "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_sends_garbage_is_survived() {
    let (membership, one, two) = two(options(), echo()).await;
    // A new connection of a member ends its older one, so each has but one at a time.
    let talks = (0..15).map(|member| {
        let (raw, address) = (Raw::new(), two.address.clone());
        membership.join(holder(3 + member), "127.0.0.1:1", raw.fingerprint());
        task::spawn(async move {
            for seed in 0..10 {
                let bytes = mad_bytes(&mut SmallRng::seed_from_u64(member * 10 + seed));
                // A machine that is busy may take longer than a handshake may.
                if let Ok(stream) = raw.connect(&address).await {
                    say(stream, &bytes).await;
                }
            }
        })
    });
    for talk in futures::future::join_all(talks).await {
        talk.unwrap();
    }
    assert_eq!(one.call(id(2), 0, "x").await.unwrap(), "x");
}

/// A hello and frames, of which something may be wrong or missing.
fn mad_bytes(random: &mut SmallRng) -> Vec<u8> {
    let mut bytes = match random.random_range(0..10) {
        0 => random_bytes(random, 200),
        1 => hello(random.random(), random.random()),
        _ => hello(1, 1),
    };
    if random.random_bool(0.1) && !bytes.is_empty() {
        let at = random.random_range(0..bytes.len());
        bytes[at] = random.random();
    }
    bytes.extend(random_frames(random));
    if random.random_bool(0.2) {
        bytes.truncate(random.random_range(0..=bytes.len()));
    }
    bytes
}

#[tokio::test]
async fn absurd_lengths_end_the_connection() {
    let (membership, one, two) = two(options(), echo()).await;
    let raw = Raw::new();
    membership.join(holder(3), "127.0.0.1:1", raw.fingerprint());
    for bytes in [
        [hello(1, 1), frame(u32::MAX, 1, 0, 0, b"")].concat(),
        [hello(1, 1), frame((64 << 20) + 1, 9, 0, 0, b"")].concat(),
        [b"stoapeer".as_slice(), &u32::MAX.to_be_bytes()].concat(),
        // Half of a request, and silence: nothing answers its pings.
        [hello(1, 1), frame(64 << 20, 1, 0, 0, b"half")].concat(),
        // Answers to nothing.
        [hello(1, 1), frame(0, 2, 0, 0, b"")].concat(),
    ] {
        say(raw.connect(&two.address).await.unwrap(), &bytes).await;
    }
    assert_eq!(one.call(id(2), 0, "x").await.unwrap(), "x");
}

#[tokio::test]
async fn frames_of_a_later_version_are_skipped() {
    let (membership, _one, two) = two(options(), echo()).await;
    let raw = Raw::new();
    membership.join(holder(3), "127.0.0.1:1", raw.fingerprint());
    let later = frame(5, 77, 1, 1, b"later");
    let bytes = [hello(1, 9), later, frame(3, 1, 0, 8, b"now")].concat();
    let answer = say(raw.connect(&two.address).await.unwrap(), &bytes).await;
    let expected = frame(3, 2, 0, 8, b"now");
    assert!(answer.windows(expected.len()).any(|part| part == expected), "{answer:?}");
}

/// A member that accepts connections, and answers with the bytes of a seed.
async fn mad_server(membership: &Membership, member: u64) {
    let raw = Raw::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    membership.join(holder(member), listener.local_addr().unwrap(), raw.fingerprint());
    task::spawn(async move {
        for seed in member * 1000.. {
            let Ok((socket, _)) = listener.accept().await else { return };
            let Ok(mut stream) = raw.accept(socket).await else { continue };
            let mut random = SmallRng::seed_from_u64(seed);
            let welcome = match random.random_range(0..8) {
                0 => random_bytes(&mut random, 100),
                _ => hello(1, 1),
            };
            let frames = random_frames(&mut random);
            let _ = stream.read(&mut [0; 1]).await;
            say(stream, &[welcome, frames].concat()).await;
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_answers_with_garbage_is_survived() {
    let (membership, one, _two) = two(options(), echo()).await;
    for member in 3..18 {
        mad_server(&membership, member).await;
    }
    for _ in 0..6 {
        let calls = (3..18).flat_map(|member| [(member, "a"), (member, "b")]);
        let calls = calls.map(|(member, body)| one.call(id(member), 0, body));
        for answer in futures::future::join_all(calls).await {
            // By chance an answer may fit.
            let Err(error) = answer else { continue };
            let unreadable = error.message().contains("cannot be read");
            assert!(unreadable || is_unreachable(&error), "{error:?}");
        }
    }
    assert_eq!(one.call(id(2), 0, "x").await.unwrap(), "x");
}
