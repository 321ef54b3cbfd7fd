//! How far a load has come, in Hypertable's fifty stars (reference §1.4).

use stoa_error::Result;

use super::Output;

const STARS: u64 = 51;

/// Draws the display; nothing if the length is not known.
pub(crate) struct ProgressDisplay {
    total: u64,
    stars: u64,
}

impl ProgressDisplay {
    /// Begins a display of so many bytes.
    pub(crate) fn start(total: Option<u64>, out: &mut dyn Output) -> Result<Self> {
        let Some(total) = total else { return Ok(Self { total: 0, stars: STARS }) };
        let scale = "0%   10   20   30   40   50   60   70   80   90   100%";
        let marks = "|----|----|----|----|----|----|----|----|----|----|";
        let size = grouped(total);
        out.progress(&format!("\nLoading {size} bytes of input data...\n\n{scale}\n{marks}\n"))?;
        Ok(Self { total: total.max(1), stars: 0 })
    }

    /// Draws the stars up to so many bytes.
    pub(crate) fn advance(&mut self, done: u64, out: &mut dyn Output) -> Result<()> {
        if self.stars == STARS {
            return Ok(());
        }
        let share = u128::from(done) * u128::from(STARS) / u128::from(self.total);
        let stars = u64::try_from(share).unwrap_or(STARS).min(STARS);
        if stars > self.stars {
            out.progress(&"*".repeat((stars - self.stars) as usize))?;
            self.stars = stars;
            if stars == STARS {
                out.progress("\n")?;
            }
        }
        Ok(())
    }

    /// Draws the rest.
    pub(crate) fn finish(&mut self, out: &mut dyn Output) -> Result<()> {
        self.advance(self.total, out)
    }
}

/// A number with a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
