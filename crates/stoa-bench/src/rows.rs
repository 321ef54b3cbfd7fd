//! What one row holds besides its account and day: a pure function of seed and row number.

use crate::mix::mix;

/// The devices, most frequent first, with their share in 1/256.
const DEVICES: [(&str, u32); 5] =
    [("smartphone", 160), ("pc", 56), ("tablet", 24), ("tv", 12), ("other", 4)];

/// The 47 prefectures of Japan, with their share in 1/1024, roughly by population.
const REGIONS: [(&str, u32); 47] = [
    ("tokyo", 114),
    ("kanagawa", 75),
    ("osaka", 71),
    ("aichi", 61),
    ("saitama", 60),
    ("chiba", 51),
    ("hyogo", 44),
    ("hokkaido", 42),
    ("fukuoka", 42),
    ("shizuoka", 29),
    ("ibaraki", 23),
    ("hiroshima", 22),
    ("kyoto", 21),
    ("miyagi", 19),
    ("niigata", 18),
    ("nagano", 17),
    ("gifu", 16),
    ("gunma", 16),
    ("tochigi", 16),
    ("okayama", 15),
    ("fukushima", 15),
    ("mie", 14),
    ("kumamoto", 14),
    ("kagoshima", 13),
    ("okinawa", 12),
    ("shiga", 12),
    ("yamaguchi", 11),
    ("ehime", 11),
    ("nara", 11),
    ("nagasaki", 11),
    ("aomori", 10),
    ("iwate", 10),
    ("ishikawa", 9),
    ("oita", 9),
    ("yamagata", 9),
    ("miyazaki", 9),
    ("toyama", 8),
    ("akita", 8),
    ("kagawa", 8),
    ("wakayama", 8),
    ("yamanashi", 7),
    ("saga", 7),
    ("fukui", 6),
    ("tokushima", 6),
    ("kochi", 5),
    ("shimane", 5),
    ("tottori", 4),
];

const MICROS: i64 = 1_000_000;

/// Makes rows; holds look-up tables only.
#[derive(Debug)]
pub(crate) struct RowMaker {
    seed: u64,
    device_of: [u8; 256],
    region_of: [u8; 1024],
}

/// The measures of one row; money in millionths of the currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub(crate) impressions: i64,
    pub(crate) clicks: i64,
    pub(crate) conversions: i64,
    pub(crate) cost: i64,
    pub(crate) revenue: i64,
    /// None where the campaign shows no video.
    pub(crate) video_views: Option<i64>,
}

/// The dimensions of one row besides account and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimensions {
    /// `0..campaigns`.
    pub(crate) campaign: u64,
    pub(crate) device: &'static str,
    pub(crate) region: &'static str,
}

impl RowMaker {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed), device_of: look_up(&DEVICES), region_of: look_up(&REGIONS) }
    }

    /// `row` is the number of the row in account order; `campaigns` > 0.
    pub(crate) fn dimensions(&self, row: u64, campaigns: u64) -> Dimensions {
        let bits = self.bits(row, 0);
        Dimensions {
            campaign: ((bits & 0xFFFF_FFFF) * campaigns) >> 32,
            device: DEVICES[usize::from(self.device_of[(bits >> 32) as usize & 0xFF])].0,
            region: REGIONS[usize::from(self.region_of[(bits >> 40) as usize & 0x3FF])].0,
        }
    }

    /// The same arguments as [`Self::dimensions`].
    pub(crate) fn metrics(&self, row: u64, campaigns: u64) -> Metrics {
        let campaign = ((self.bits(row, 0) & 0xFFFF_FFFF) * campaigns) >> 32;
        let bits = self.bits(row, 1);
        let part = |shift: u32, mask: u64| ((bits >> shift) & mask) as i64;
        // Log-uniform, 1 to 2047.
        let magnitude = part(0, 0xF) % 11;
        let impressions = (1 << magnitude) + (part(4, 0x3FF) & ((1 << magnitude) - 1));
        let clicks = impressions * part(14, 0x3F) / 1024;
        let conversions = clicks * part(20, 0x3F) / 512;
        let cost = clicks * (10 * MICROS + part(26, 0xFFF) * 25_000);
        let revenue = conversions * (500 * MICROS + part(38, 0xFFF) * 1_000_000);
        let video_views = (campaign % 4 == 3).then(|| impressions * part(50, 0xFF) / 512);
        Metrics { impressions, clicks, conversions, cost, revenue, video_views }
    }

    fn bits(&self, row: u64, lane: u64) -> u64 {
        mix(self.seed ^ (row * 2 + lane))
    }
}

/// Spreads shares over a table of `N` slots; what is left over goes to the first name.
fn look_up<const N: usize>(shares: &[(&str, u32)]) -> [u8; N] {
    let mut table = [0; N];
    let slots = shares.iter().enumerate().flat_map(|(i, (_, n))| vec![i as u8; *n as usize]);
    for (slot, index) in table.iter_mut().zip(slots) {
        *slot = index;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_their_tables() {
        assert_eq!(DEVICES.iter().map(|d| d.1).sum::<u32>(), 256);
        assert!(REGIONS.iter().map(|r| r.1).sum::<u32>() <= 1024);
    }

    #[test]
    fn every_device_and_region_appears_and_measures_agree() {
        let rows = RowMaker::new(1);
        let mut devices = std::collections::BTreeSet::new();
        let mut regions = std::collections::BTreeSet::new();
        for row in 0..20_000 {
            let d = rows.dimensions(row, 8);
            devices.insert(d.device);
            regions.insert(d.region);
            let m = rows.metrics(row, 8);
            assert!(m.impressions >= m.clicks && m.clicks >= m.conversions);
            assert_eq!(m.video_views.is_some(), d.campaign % 4 == 3);
            assert!(m.cost >= m.clicks * 10 * MICROS && m.revenue >= 0);
        }
        assert_eq!((devices.len(), regions.len()), (5, 47));
    }
}
