fn main() {
    let mut summary = stoa_sim::history::Summary::default();
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (from, to) = (args[0], args[1]);
    let m = std::env::args()
        .nth(3)
        .and_then(|n| stoa_sim::history::Mutation::ALL.into_iter().find(|m| format!("{m:?}") == n));
    let mut bad = 0;
    for seed in from..to {
        match stoa_sim::history::run(seed, m) {
            Ok(s) => summary += s,
            Err(v) => {
                bad += 1;
                println!("{v}");
                if bad == 1 && to - from == 1 {
                    for l in stoa_sim::history::trace(seed, m, 100000) {
                        println!("{l}");
                    }
                }
            }
        }
    }
    println!("{summary:?} bad {bad}");
}
