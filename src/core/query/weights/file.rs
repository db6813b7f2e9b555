//! The weights file: magic, versions, little-endian numbers and a checksum.

use std::{array::from_fn, ops::RangeInclusive};

use bytes::Buf as _;
use sha2::{Digest, Sha256};

use super::{MAX_MAGNITUDE, PackedFeature, TYPES, Weights, WeightsHeader};
use crate::query::{error::WeightsProblem, features::VERSION as FEATURES};

const MAGIC: &[u8; 8] = b"ORACLEQC";
/// Version of the layout.
const FORMAT: u32 = 1;
/// One for each upper half of a key.
const BUCKETS: usize = 1 << 16;
const CHECKSUM: usize = 32;
/// Bytes of the versions and the number of rows.
const NUMBERS: usize = 3 * 4;
const STAMP: usize = 32;
/// Bytes of a [`WeightsHeader`], whose fields need no padding.
const HEADER: usize = size_of::<WeightsHeader>();
const MAX_ROWS: usize = 1 << 20;
const TEMPERATURES: RangeInclusive<f32> = 0.01..=100.0;
pub(super) const MAX_BYTES: usize = MAX_ROWS * ROW + BUCKETS + (1 << 12);
/// Rest of the key, rarity, weights.
const ROW: usize = 2 + 1 + TYPES;

pub(super) fn read(bytes: &[u8]) -> Result<Weights, WeightsProblem> {
    let parts = bytes.split_last_chunk::<CHECKSUM>();
    let (body, checksum) = parts.ok_or(WeightsProblem::NotWeights)?;
    let rest = body.strip_prefix(MAGIC);
    let rest = rest.ok_or(WeightsProblem::NotWeights)?;
    let parts = rest.split_at_checked(NUMBERS);
    let (mut numbers, mut rest) = parts.ok_or(WeightsProblem::Damaged)?;
    let (format, features) = (numbers.get_u32_le(), numbers.get_u32_le());
    if (format, features) != (FORMAT, FEATURES) {
        return Err(WeightsProblem::Version {
            found: format!("{format}.{features}"),
            wanted: format!("{FORMAT}.{FEATURES}"),
        });
    }
    if Sha256::digest(body)[..] != checksum[..] {
        return Err(WeightsProblem::Damaged);
    }
    let count = numbers.get_u32_le() as usize;
    if count > MAX_ROWS || rest.len() != HEADER + BUCKETS + count * ROW {
        return Err(WeightsProblem::Damaged);
    }
    let mut stamp = [0; STAMP];
    rest.copy_to_slice(&mut stamp);
    let mut real = || rest.get_f32_le();
    let head = WeightsHeader {
        stamp,
        temperature: real(),
        rarity_step: real(),
        gains: from_fn(|_| real()),
        scales: from_fn(|_| real()),
        bias: from_fn(|_| real()),
        shapes: from_fn(|_| from_fn(|_| real())),
        lexicon: from_fn(|_| from_fn(|_| real())),
    };
    let (counts, rest) = rest.split_at(BUCKETS);
    let (rests, rest) = rest.split_at(2 * count);
    let (rarities, weights) = rest.split_at(count);
    let mut starts = vec![0];
    let mut sum = 0;
    for &in_bucket in counts {
        sum += u32::from(in_bucket);
        starts.push(sum);
    }
    let cells = rests.chunks_exact(2).zip(rarities);
    let cells = cells.zip(weights.chunks_exact(TYPES));
    let rows: Vec<PackedFeature> = cells
        .map(|((rest, &rarity), weights)| PackedFeature {
            rest: u16::from_le_bytes([rest[0], rest[1]]),
            rarity,
            weights: from_fn(|place| i8::from_le_bytes([weights[place]])),
        })
        .collect();
    // A matching checksum does not prove that the content is plausible.
    let sound = TEMPERATURES.contains(&head.temperature)
        && head.numbers().all(|number| number.abs() < MAX_MAGNITUDE);
    if sum as usize != count || !sound {
        return Err(WeightsProblem::Damaged);
    }
    Ok(Weights { head, starts, rows })
}
