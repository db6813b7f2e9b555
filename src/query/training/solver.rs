//! Multinomial logistic regression with a quadratic penalty, by L-BFGS.

use std::collections::VecDeque;

use crate::query::weights::{TYPES, add, shares};

/// Further steps change only the fourth decimal.
const MAX_STEPS: usize = 80;
const MEMORY: usize = 8;

#[derive(Default)]
pub(super) struct Problem {
    places: Vec<u32>,
    values: Vec<f64>,
    /// End and label.
    rows: Vec<(usize, usize)>,
}

impl Problem {
    pub(super) fn add(&mut self, at: usize, value: f64) {
        if value != 0.0 {
            self.places.push(at as u32);
            self.values.push(value);
        }
    }

    pub(super) fn end(&mut self, label: usize) {
        self.rows.push((self.places.len(), label));
    }

    pub(super) fn each(&self, mut sink: impl FnMut(usize, f64)) {
        for (&place, &value) in self.places.iter().zip(&self.values) {
            sink(place as usize, value);
        }
    }

    /// Writes the gradient to `gradient`.
    fn loss(&self, weights: &[f64], penalty: f64, gradient: &mut [f64]) -> f64 {
        let mut loss = 0.0;
        for (gradient, weight) in gradient.iter_mut().zip(weights) {
            *gradient = penalty * weight;
            loss += 0.5 * penalty * weight * weight;
        }
        let mut begin = 0;
        for &(end, label) in &self.rows {
            let cells = || self.places[begin..end].iter().zip(&self.values[begin..end]);
            let mut scores = [0.0; TYPES];
            for (&place, &value) in cells() {
                let row = &weights[place as usize * TYPES..][..TYPES];
                for (score, weight) in scores.iter_mut().zip(row) {
                    *score += value * weight;
                }
            }
            let mut off = shares(&scores);
            loss -= libm::log(off[label].max(1e-300));
            off[label] -= 1.0;
            for (&place, &value) in cells() {
                let row = &mut gradient[place as usize * TYPES..][..TYPES];
                add(row, &off, value);
            }
            begin = end;
        }
        loss
    }
}

struct Correction {
    position_delta: Vec<f64>,
    gradient_delta: Vec<f64>,
    inverse_curvature: f64,
}

pub(super) fn solve(problem: &Problem, rows: usize, penalty: f64) -> Vec<f64> {
    let mut weights = vec![0.0; rows * TYPES];
    let mut gradient = weights.clone();
    let mut loss = problem.loss(&weights, penalty, &mut gradient);
    let mut steps: VecDeque<Correction> = VecDeque::new();
    for _ in 0..MAX_STEPS {
        let direction = direction(&gradient, &steps);
        let descent = -dot(&gradient, &direction);
        if descent > -1e-9 {
            break;
        }
        let mut length = 1.0;
        let mut next_gradient = vec![0.0; weights.len()];
        let (next, next_loss) = loop {
            let stepped = weights.iter().zip(&direction);
            let next: Vec<f64> = stepped.map(|(at, by)| at - length * by).collect();
            let loss_there = problem.loss(&next, penalty, &mut next_gradient);
            if loss_there <= loss + 1e-4 * length * descent || length < 1e-10 {
                break (next, loss_there);
            }
            length *= 0.5;
        };
        let position_delta = difference(&next, &weights);
        let gradient_delta = difference(&next_gradient, &gradient);
        let curve = dot(&position_delta, &gradient_delta);
        let done = (loss - next_loss).abs() < 1e-6 * loss.abs();
        (weights, gradient, loss) = (next, next_gradient, next_loss);
        if curve > 1e-12 {
            let inverse_curvature = curve.recip();
            steps.push_back(Correction {
                position_delta,
                gradient_delta,
                inverse_curvature,
            });
            if steps.len() > MEMORY {
                steps.pop_front();
            }
        }
        if done {
            break;
        }
    }
    weights
}

fn direction(gradient: &[f64], steps: &VecDeque<Correction>) -> Vec<f64> {
    let mut direction = gradient.to_vec();
    let mut coefficients = Vec::with_capacity(steps.len());
    for step in steps.iter().rev() {
        let part = step.inverse_curvature * dot(&step.position_delta, &direction);
        add(&mut direction, &step.gradient_delta, -part);
        coefficients.push(part);
    }
    let scale = steps.back().map_or_else(
        || dot(gradient, gradient).sqrt().max(1e-12).recip(),
        |last| {
            dot(&last.position_delta, &last.gradient_delta)
                / dot(&last.gradient_delta, &last.gradient_delta)
        },
    );
    direction.iter_mut().for_each(|part| *part *= scale);
    for (step, part) in steps.iter().zip(coefficients.iter().rev()) {
        let back = step.inverse_curvature * dot(&step.gradient_delta, &direction);
        add(&mut direction, &step.position_delta, part - back);
    }
    direction
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solver_learns_discriminating_features() {
        let mut problem = Problem::default();
        for round in 0..30 {
            let label = round % TYPES;
            problem.add(0, 1.0);
            problem.add(1 + label, 1.0);
            problem.end(label);
        }
        let weights = solve(&problem, 1 + TYPES, 0.01);
        for label in 0..TYPES {
            let row = &weights[(1 + label) * TYPES..][..TYPES];
            let most = row.iter().copied().fold(f64::MIN, f64::max);
            assert!(most > 1.0 && row[label] == most, "{label}: {row:?}");
        }
        assert_eq!(
            weights,
            solve(&problem, 1 + TYPES, 0.01),
            "the same bits again"
        );
    }
}
