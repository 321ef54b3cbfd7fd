//! Samples in memory: of each second for minutes, of each ten minutes for a week.

use std::collections::VecDeque;

use stoa_figures::Sample;

use super::marks::{Between, Longest, Mark};

/// How long a step is, and of how many samples are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) seconds: u64,
    pub(crate) kept: usize,
}

/// Ten minutes, an hour, a day, a week.
pub(crate) const STEPS: [Step; 4] = [
    Step { seconds: 1, kept: 600 },
    Step { seconds: 10, kept: 360 },
    Step { seconds: 60, kept: 1440 },
    Step { seconds: 600, kept: 1008 },
];

impl Step {
    pub(super) fn ms(self) -> i64 {
        self.seconds as i64 * 1000
    }
}

/// The samples of all steps.
#[derive(Debug, Default)]
pub(super) struct Levels([Level; STEPS.len()]);

#[derive(Debug, Default)]
struct Level {
    samples: VecDeque<Sample>,
    /// What has begun and is no sample yet.
    begun: Option<Begun>,
}

/// A step that goes on.
#[derive(Debug)]
struct Begun {
    from: Mark,
    longest: Longest,
    /// Of what is at a moment, the most.
    most: Sample,
}

impl Levels {
    /// Takes up the sample of a second and the mark at its end. Returns it, and those of longer steps that end with it.
    pub(super) fn add(&mut self, second: Sample, mark: &Mark) -> Vec<Sample> {
        let mut done = vec![second.clone()];
        for (level, step) in self.0.iter_mut().zip(STEPS).skip(1) {
            let Some(begun) = &mut level.begun else {
                level.begin(mark, &second);
                continue;
            };
            begun.longest.absorb(mark);
            begun.most = most(&begun.most, &second);
            // The step ends with the first second that is in the next one.
            if begun.most.unix_ms.div_euclid(step.ms()) == second.unix_ms.div_euclid(step.ms()) {
                continue;
            }
            let between = Between { rates: &begun.from, from: &begun.from, longest: begun.longest };
            let counted = between.counted(mark, second.unix_ms);
            let Sample {
                running,
                computing,
                waiting,
                cache_bytes,
                fresh_rows,
                appends_waiting,
                ..
            } = begun.most;
            let sample = Sample {
                step_s: step.seconds,
                running,
                computing,
                waiting,
                cache_bytes,
                fresh_rows,
                appends_waiting,
                ..counted
            };
            level.keep(sample.clone(), step);
            done.push(sample);
            level.begin(mark, &second);
        }
        if let (Some(level), Some(step)) = (self.0.first_mut(), STEPS.first()) {
            level.keep(second, *step);
        }
        done
    }

    /// Takes up a sample of an earlier server; those of one step come in their order.
    pub(super) fn remember(&mut self, sample: Sample) {
        let level = self.0.iter_mut().zip(STEPS).find(|(_, step)| step.seconds == sample.step_s);
        if let Some((level, step)) = level {
            level.keep(sample, step);
        }
    }

    /// Samples of a step that ended after `since_unix_ms`, oldest first.
    pub(super) fn since(&self, step_s: u64, since_unix_ms: i64) -> Vec<Sample> {
        let level = self.0.iter().zip(STEPS).find(|(_, step)| step.seconds == step_s);
        let samples = level.into_iter().flat_map(|(level, _)| &level.samples);
        samples.filter(|sample| sample.unix_ms > since_unix_ms).cloned().collect()
    }
}

impl Level {
    fn begin(&mut self, mark: &Mark, second: &Sample) {
        let most = Sample { unix_ms: second.unix_ms, ..Sample::default() };
        self.begun = Some(Begun { from: mark.clone(), longest: Longest::default(), most });
    }

    fn keep(&mut self, sample: Sample, step: Step) {
        while self.samples.len() >= step.kept {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

/// The most of both; the time of the first.
fn most(a: &Sample, b: &Sample) -> Sample {
    Sample {
        unix_ms: a.unix_ms,
        running: a.running.max(b.running),
        computing: a.computing.max(b.computing),
        waiting: a.waiting.max(b.waiting),
        cache_bytes: a.cache_bytes.max(b.cache_bytes),
        fresh_rows: a.fresh_rows.max(b.fresh_rows),
        appends_waiting: a.appends_waiting.max(b.appends_waiting),
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_their_boundaries_and_are_bounded() {
        let mut levels = Levels::default();
        let mark = Mark::first();
        let mut ended = Vec::new();
        for second in 0..2000_i64 {
            let running = if second == 1234 { 7 } else { 1 };
            let sample = Sample {
                unix_ms: 1_000_003 + second * 1000,
                step_s: 1,
                running,
                fresh_rows: Some(second as u64),
                ..Sample::default()
            };
            ended.extend(levels.add(sample, &mark));
        }
        let of = |step: u64| ended.iter().filter(|s| s.step_s == step).collect::<Vec<_>>();
        assert_eq!((of(1).len(), of(10).len(), of(60).len(), of(600).len()), (2000, 199, 33, 3));
        assert!(of(60).iter().all(|sample| sample.unix_ms % 60_000 == 3));
        let busy: Vec<u64> = of(60).iter().map(|s| s.running).filter(|n| *n == 7).collect();
        assert_eq!(busy, [7], "the most of the minute, once");
        // 1234 s after 1000.003 s: the minute that ends at 2280 s.
        assert_eq!(of(60).iter().find(|s| s.running == 7).unwrap().unix_ms, 2_280_003);
        assert_eq!(of(60)[0].fresh_rows, Some(20), "up to 1020 s");
        assert_eq!((levels.since(1, 0).len(), levels.since(10, 0).len()), (600, 199));
        assert_eq!(levels.since(10, 2_970_003).len(), 2);
        assert!(levels.since(7, 0).is_empty());
    }
}
