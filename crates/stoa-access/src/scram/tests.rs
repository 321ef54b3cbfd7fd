//! The example of RFC 7677, and texts that PostgreSQL 15 made.

use proptest::prelude::*;

use super::*;

const AUTH_MESSAGE: &str = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
    r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
    c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

fn of_the_rfc() -> ScramSecret {
    let salt = decoded("W22ZaJ0SNY7soEsUEjb6gQ==");
    ScramSecret::from_password("pencil", &salt, ScramSecret::ITERATIONS)
}

#[test]
fn the_exchange_of_rfc_7677_comes_out() {
    let secret = of_the_rfc();
    let proof = decoded("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    let signature = decoded("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    assert!(secret.accepts_proof(AUTH_MESSAGE.as_bytes(), &proof));
    assert_eq!(secret.server_signature(AUTH_MESSAGE.as_bytes())[..], signature);

    let mut wrong = proof.clone();
    wrong[31] ^= 1;
    assert!(!secret.accepts_proof(AUTH_MESSAGE.as_bytes(), &wrong));
    assert!(!secret.accepts_proof(b"another message", &proof));
    for length in [0, 31] {
        assert!(!secret.accepts_proof(AUTH_MESSAGE.as_bytes(), &proof[..length]));
    }
}

#[test]
fn debug_and_errors_show_no_secret() {
    let secret = of_the_rfc();
    assert_eq!(format!("{secret:?}"), "ScramSecret { iterations: 4096, .. }");
    let broken = secret.to_string().replace(':', ";");
    let error = broken.parse::<ScramSecret>().unwrap_err();
    assert!(!format!("{error:?}").contains("W22Z"));
}

#[test]
fn what_is_not_a_secret_is_refused() {
    let good = of_the_rfc().to_string();
    assert_eq!(good.parse::<ScramSecret>().unwrap(), of_the_rfc());
    let stored_key = STANDARD.encode(of_the_rfc().stored_key());
    for bad in [
        String::new(),
        "pencil".to_owned(),
        "md5c2e7d1b4b1f3a1c9c3a7d1b0a6f5e4d3".to_owned(),
        good.replace("SHA-256", "SHA-1"),
        good.replace("4096", "0"),
        good.replace("4096", "-1"),
        good.replace("4096", "1000001"),
        good.replace("4096", "99999999999"),
        good.replace("W22ZaJ0SNY7soEsUEjb6gQ==", ""),
        good.replace("W22ZaJ0SNY7soEsUEjb6gQ==", "no base64"),
        good.replace("W22ZaJ0SNY7soEsUEjb6gQ==", &STANDARD.encode([7; 1025])),
        good.replace(&stored_key, &STANDARD.encode([7; 31])),
        good.replace(&stored_key, &STANDARD.encode([7; 33])),
        format!("{good}:more"),
        format!("{good} "),
    ] {
        let error = bad.parse::<ScramSecret>().unwrap_err();
        assert_eq!(error.sqlstate(), "22023", "{bad}");
    }
}

#[test]
fn a_secret_of_a_client_has_enough_iterations() {
    let of = |iterations: u32| {
        let iterations = iterations.to_string();
        let text = of_the_rfc().to_string().replace("4096", &iterations);
        text.parse::<ScramSecret>().and_then(|secret| secret.check_iterations())
    };
    for enough in [4096, 10_000, 1_000_000] {
        assert!(of(enough).is_ok(), "{enough}");
    }
    for wrong in [1, 2, 4095, 1_000_001] {
        assert_eq!(of(wrong).unwrap_err().sqlstate(), "22023", "{wrong}");
    }
    assert!(ScramSecret::is_meant_by("SCRAM-SHA-256$4096"));
    assert!(!ScramSecret::is_meant_by("SCRAM-SHA-256 is what I use"));
}

#[test]
fn what_postgresql_made_of_passwords_is_verified() {
    for (password, text) in [
        (
            "pencil",
            "SCRAM-SHA-256$4096:JB7EpnLhabKwwqSRB+0KYg==$TKZSFSwYo55ommmvRzSZtXPeqA5TwPIHbmLjQStGjlM=:I/GHKjE4SSxx0KuZMMidUhB1xaGj2f8tRXiiI6uhcy0=",
        ),
        (
            "I\u{ad}X",
            "SCRAM-SHA-256$4096:qaH+VU97cwDIVFI8KtH6SA==$sGxx75tMAAgExyDLqkRAEvZvpP6SBjUugA1/MMxqwaQ=:9a1sQug0m2FLVZTHN/jp4CkVAupSwy7Xv6ETnTBARSk=",
        ),
        (
            "\u{2168} \u{a0} \u{aa}",
            "SCRAM-SHA-256$4096:QLtpajxVLXXAqrLHMTAhVQ==$RlZphB8WO++j2UEAnbFgifc9aGHhPJY1TCTfvmDq290=:jX1NuFUjGh1D6Uqk8cirrxqa+pcxMoTeS8OySxfQqYk=",
        ),
        // The next three are prohibited by SASLprep, or not looked at as they are ASCII.
        (
            "\u{e9}\u{7}",
            "SCRAM-SHA-256$4096:zmk+FWD0FCEw5UuayzBlOg==$u2/GwDSGm9bE1ISnhAQ3i2uaQGoabyzNkP6m1bGTv6k=:AA8h4oZdpFgc8U4h8SbdWXLXwZtNnNoW34UXjcFKN04=",
        ),
        (
            "a\u{7}",
            "SCRAM-SHA-256$4096:dpalPVfEvj8anIEenaqEIA==$YZ969kGXJWoapmKRrqktdygBk6JsjPAh9QrbtE4YgsI=:FDWMl2IGjPAr3ugWJDobshob0v9dfenYJ3GfzW8cN04=",
        ),
        (
            "\u{627}1",
            "SCRAM-SHA-256$4096:7n5xN0U2FEH2lRZbPxadGQ==$1MQifHWjL0vGV0v23QrUh+4lBz4PHkFfwoB/prxv4r8=:S2oYrGQV+0Nyj8Rmez9frBVnjR/n7EZ1RLkurqQU0D8=",
        ),
        (
            "stra\u{df}e \u{fc}\u{308}",
            "SCRAM-SHA-256$4096:FSNkfusN3mr/XtQ40A+EjQ==$XaB7AIO8U1/fZTs3hRolaD3vI4RiR+dE+9ZM1Qco9k4=:hbI/uFcIjL27Sce9nuFwfpXyHgVENQHiEDd5JZVgYoI=",
        ),
    ] {
        let secret: ScramSecret = text.parse().unwrap();
        assert!(secret.verify(password), "{password:?}");
        assert!(!secret.verify(&format!("{password}x")), "{password:?}");
        assert_eq!(
            ScramSecret::from_password(password, secret.salt(), secret.iterations()),
            secret
        );
        assert_eq!(secret.to_string(), text);
    }
}

#[test]
fn passwords_beyond_ascii_are_normalised_as_clients_do() {
    let few = NonZeroU32::new(2).unwrap();
    let secret = |password| ScramSecret::from_password(password, b"salt", few);
    // RFC 4013, section 3: a soft hyphen is nothing, a feminine ordinal an a, a roman nine IX.
    assert!(secret("I\u{ad}X").verify("IX"));
    assert!(secret("\u{aa}").verify("a"));
    assert!(secret("\u{2168}").verify("IX"));
    assert!(secret("a\u{a0}b").verify("a b"));
    assert!(!secret("\u{e9}\u{7}").verify("\u{e9}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_password_is_verified_and_any_secret_comes_back(
        password in "[^\0]{0,20}",
        other in "[^\0]{0,20}",
        salt in proptest::collection::vec(any::<u8>(), 1..40),
        iterations in 1u32..5,
    ) {
        let iterations = NonZeroU32::new(iterations).unwrap();
        let secret = ScramSecret::from_password(&password, &salt, iterations);
        prop_assert!(secret.verify(&password));
        let longer = format!("{password}\0");
        prop_assert!(!secret.verify(&longer));
        prop_assert_eq!(secret.verify(&other), prepared(&password) == prepared(&other));
        let read: ScramSecret = secret.to_string().parse().unwrap();
        prop_assert_eq!(read.salt(), &salt[..]);
        prop_assert_eq!(read, secret);
    }

    #[test]
    fn no_text_makes_it_panic(text in "(SCRAM-SHA-256)?[$:0-9A-Za-z+/=]{0,200}") {
        let read = text.parse::<ScramSecret>().map(|secret| secret.to_string());
        prop_assert!(read.is_err() || text.starts_with("SCRAM-SHA-256$"));
    }
}
