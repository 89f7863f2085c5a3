//! Makes commands of operations: picks holds, bookings and units of those that are there.

use soldonce_core::{
    Amount, Authority, BookingId, CallerId, CategoryNo, Change, Command, EventNo, Fence,
    GivenLines, Hold, HoldId, Holder, LineChoice, NewHold, Policy, PolicyChange, Selection, Span,
    TtlMax, UnitNo, Wish,
};

use super::ops::{By, Known, OnBooking, OnEvent, OnHold, Reach, Units};
use super::play::Play;
use crate::world::{caller, exchange_of, holder, text};

impl Play {
    pub(super) fn on_event(&mut self, event: u8, what: &OnEvent) -> Command {
        let event = self.events[usize::from(event) % self.events.len()];
        match what {
            OnEvent::Hold { holder, units, ttl } => {
                let ttl = ttl.map(|ms| Span::from_ms(ms.into()));
                let wish = Wish::Named(self.selection(event, units));
                Command::Hold(NewHold {
                    ttl,
                    ..self.new_hold(event, *holder, wish)
                })
            }
            OnEvent::Best {
                holder,
                quantity,
                category,
                together,
            } => {
                let wish = Wish::Best {
                    quantity: u32::from(*quantity),
                    category: category
                        .checked_sub(1)
                        .map(|number| CategoryNo(number.into())),
                    together: *together,
                };
                Command::Hold(self.new_hold(event, *holder, wish))
            }
            OnEvent::Sell { holder, units } => Command::Sell {
                event,
                selection: self.selection(event, units),
                holder: named(*holder),
                booking: self.world.mint_booking(),
                reference: None,
            },
            OnEvent::Block(units) => {
                let selection = self.selection(event, units);
                Command::Block {
                    event,
                    selection,
                    reason: text("kept"),
                }
            }
            OnEvent::Unblock(units) => {
                let selection = self.selection(event, units);
                Command::Unblock {
                    event,
                    selection,
                    reason: text("for sale"),
                }
            }
            OnEvent::Rules { per_holder, window } => {
                let policy = Policy {
                    units_per_holder_max: (*per_holder).into(),
                    payment_window: Span::from_ms((*window).into()),
                    ..self.world.inventory.event(event).unwrap().policy.clone()
                };
                Command::UpdateEvent {
                    event,
                    change: Box::new(PolicyChange::from(&policy).into()),
                }
            }
            OnEvent::CallOff => Command::CancelEvent {
                event,
                reason: text("rain"),
            },
        }
    }

    pub(super) fn on_hold(&mut self, reach: &Reach, what: &OnHold) -> Command {
        let on = self.on(reach);
        match what {
            OnHold::Change {
                add,
                drop,
                drop_places,
            } => {
                let hold = self.world.inventory.hold(on.hold);
                let event = hold.map_or(self.events[0], |hold| hold.event);
                let places = Units {
                    seats: Vec::new(),
                    places: *drop_places,
                };
                Command::Change(Box::new(Change {
                    on,
                    add: self.selection(event, add),
                    drop: some(&hold.map(units_of).unwrap_or_default(), drop),
                    drop_places: self.selection(event, &places),
                }))
            }
            OnHold::Extend { ttl } => {
                let ttl = ttl.map(|ms| Span::from_ms(ms.into()));
                Command::Extend {
                    on,
                    ttl,
                    ttl_max: TtlMax::HoldMax,
                }
            }
            OnHold::Checkout(given) => {
                let given = given.as_ref().map(|(of, lines)| self.given(*of, lines));
                let booking = self.world.mint_booking();
                Command::Checkout {
                    on,
                    booking,
                    reference: None,
                    exchange: given,
                }
            }
            OnHold::Abandon => Command::Abandon { on, booking: None },
            OnHold::Release => Command::Release { on },
            OnHold::Revoke => Command::Revoke {
                hold: on.hold,
                reason: text("fraud"),
            },
            OnHold::Confirm => {
                let booking = self.world.mint_booking();
                Command::Confirm {
                    on,
                    booking,
                    reference: None,
                }
            }
        }
    }

    pub(super) fn on_booking(&self, booking: u8, what: &OnBooking) -> Command {
        let booking = latest(&self.bookings, booking).unwrap_or(BookingId::from_bits(0));
        match what {
            OnBooking::Pay(state) => self.world.report(booking, *state),
            OnBooking::Refund(halves) => Command::Refund {
                booking,
                amount: Amount::from_minor(i64::from(*halves) * 500),
            },
            OnBooking::Cancel { by, lines: None } => Command::Cancel {
                booking,
                by: authority(*by),
                lines: LineChoice::All,
            },
            OnBooking::Cancel {
                by,
                lines: Some(picks),
            } => {
                let units = some(&self.lines(booking), picks);
                let lines = LineChoice::Some {
                    units,
                    places: Selection::default(),
                };
                Command::Cancel {
                    booking,
                    by: authority(*by),
                    lines,
                }
            }
            OnBooking::Exchange { give, on } => {
                let give = some(&self.lines(booking), give);
                exchange_of(booking, give, self.on(on))
            }
        }
    }

    fn given(&self, booking: u8, lines: &[u8]) -> GivenLines {
        let booking = latest(&self.bookings, booking).unwrap_or(BookingId::from_bits(0));
        let units = some(&self.lines(booking), lines);
        GivenLines { booking, units }
    }

    fn on(&self, reach: &Reach) -> soldonce_core::OnHold {
        let hold = latest(&self.holds, reach.hold).unwrap_or(HoldId::from_bits(0));
        let fence = self
            .world
            .inventory
            .hold(hold)
            .map_or(Fence(1), |hold| hold.fence);
        soldonce_core::OnHold {
            hold,
            by: authority(reach.by),
            fence: match reach.fence {
                Known::None => None,
                Known::Right => Some(fence),
                Known::Older => Some(Fence(fence.0.saturating_sub(1))),
            },
        }
    }

    fn new_hold(&mut self, event: EventNo, holder: u8, wish: Wish) -> NewHold {
        let hold = self.world.mint_hold();
        NewHold {
            event,
            hold,
            holder: named(holder),
            wish,
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        }
    }

    fn selection(&self, event: EventNo, units: &Units) -> Selection {
        let chart = &self.world.inventory.event(event).unwrap().chart;
        let seat = |seat: &u8| {
            let number = UnitNo(u32::from(*seat) % chart.seats());
            chart.unit_name(number).to_string()
        };
        let seats: Vec<String> = units.seats.iter().map(seat).collect();
        let places = (units.places > 0).then_some(("floor", u32::from(units.places)));
        chart
            .select(seats.iter().map(String::as_str), places)
            .unwrap()
    }

    fn lines(&self, booking: BookingId) -> Vec<UnitNo> {
        let lines = self
            .world
            .inventory
            .booking(booking)
            .map(|found| &found.lines);
        lines.into_iter().flatten().map(|line| line.unit).collect()
    }
}

fn latest<T: Copy>(list: &[T], back: u8) -> Option<T> {
    list.iter()
        .rev()
        .nth(usize::from(back) % list.len().max(1))
        .copied()
}

/// Some units of a list, sorted and distinct.
fn some(units: &[UnitNo], picks: &[u8]) -> Vec<UnitNo> {
    let pick = |pick: &u8| units.get(usize::from(*pick) % units.len().max(1)).copied();
    let mut picked: Vec<UnitNo> = picks.iter().filter_map(pick).collect();
    picked.sort_unstable();
    picked.dedup();
    picked
}

fn units_of(hold: &Hold) -> Vec<UnitNo> {
    hold.units.iter().map(|held| held.unit).collect()
}

fn named(number: u8) -> Holder {
    holder(["ann", "bob", "cid", "dee"][usize::from(number) % 4])
}

fn authority(by: By) -> Authority {
    match by {
        By::Secret => Authority::Secret,
        By::Owner => Authority::Caller(caller()),
        By::Stranger => Authority::Caller(CallerId::from_bits(8)),
        By::Staff => Authority::Staff,
    }
}
