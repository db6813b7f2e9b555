//! Where keys cannot be had while a query runs: nobody is asked there.

use std::time::Duration;

use super::{Heard, ahead::Typed};

pub(in crate::cli) enum Keyboard {}

impl Keyboard {
    pub(in crate::cli) const fn taking_all(_: bool) -> Option<Self> {
        None
    }

    pub(in crate::cli) const fn taking_answers() -> Option<Self> {
        None
    }

    pub(super) const fn answers(&self) -> bool {
        match *self {}
    }

    pub(super) const fn ask(&mut self) {
        match *self {}
    }

    pub(super) async fn hush(&mut self, _: Duration) {
        match *self {}
    }

    pub(super) const fn asked(&mut self) {
        match *self {}
    }

    pub(super) const fn pause(&mut self) {
        match *self {}
    }

    pub(super) const fn resume(&mut self) {
        match *self {}
    }

    pub(super) async fn heard(&mut self) -> Heard {
        match *self {}
    }

    pub(super) async fn typed(self) -> Typed {
        match self {}
    }
}
