//! One suite for every ledger. The auditor judges each scenario when its ledger is dropped.

mod bookings;
mod dropped;
mod holds;
mod keys;
mod races;
mod reads;
mod refunds;

use soldonce_testkit::postgres::PgBouncer;

use crate::ledgers::TestLedger;

macro_rules! on_every_ledger {
    ($($module:ident: $($name:ident)+;)+) => {
        mod sqlite {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$module::$name(crate::ledgers::TestLedger::sqlite()).await;
            })+)+
        }
        mod postgres {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$module::$name(crate::ledgers::TestLedger::postgres().await).await;
            })+)+
        }

        /// Through a pool in transaction mode every statement is sent whole, and nothing is left to a
        /// session, which others have a moment later.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn postgres_through_a_pool_in_transaction_mode() {
            let server = TestLedger::server();
            let pool = PgBouncer::start(&server, 8).unwrap();
            $($({
                let test = TestLedger::postgres_on(&server, Some(&pool));
                $module::$name(test.await).await;
            })+)+
        }
    };
}

on_every_ledger! {
    holds:
        held_units_are_refused_to_others_with_their_state
        the_own_hold_comes_back
        a_change_takes_and_gives_up_in_one_step
        a_change_of_all_units_keeps_the_fence_rising
        an_extension_ends_at_the_cap
        a_hold_is_over_at_its_very_millisecond
        a_takeover_ends_the_whole_old_hold
        the_sweeper_writes_down_what_the_clock_has_ended
        a_release_frees_and_repeats
        areas_count_their_places
        the_best_units_are_chosen_in_the_step_that_takes_them
        blocked_units_are_not_for_sale
        an_event_that_is_renamed_and_moved_stays_so
        a_cancelled_event_sells_nothing
        a_large_event_is_called_off_in_parts;
    bookings:
        a_confirm_sells_every_unit_once
        a_confirm_needs_the_newest_fence_and_time
        lines_are_cancelled_once_and_sold_again
        a_unit_is_freed_and_held_again_at_once
        differences_are_paid_and_go_back
        a_booking_is_read_whole_while_it_changes
        an_exchange_is_one_step
        nothing_is_exchanged_for_another_event
        a_sale_without_hold
        money_confirms_a_pinned_hold
        late_money_gets_free_units_or_goes_back
        a_failed_payment_gives_the_units_back_to_the_same_buyer;
    dropped:
        an_event_is_kept_while_the_end_of_a_hold_is_not_stored
        an_event_called_off_is_kept_while_its_buyers_have_paid
        an_event_called_off_is_dropped_when_its_refunds_were_settled_elsewhere
        an_event_that_was_sold_is_kept_from_the_day_it_is_called_off
        an_event_that_is_over_is_dropped_for_good
        a_cut_deletion_goes_on_to_its_end;
    keys:
        the_same_request_gets_the_same_bytes
        another_body_is_refused_and_another_key_is_unrelated
        refusals_are_not_pinned
        twins_at_once_have_one_effect
        records_outlive_a_restart
        records_are_forgotten_after_a_day
        a_clock_that_steps_ahead_forgets_no_record
        what_gives_back_has_its_key_for_good;
    races:
        every_seat_has_one_winner
        overlapping_holds_leave_no_half
        budgets_hold_in_a_race;
    reads:
        lists_show_the_newest_first
        a_unit_knows_its_history
        commits_get_the_numbers_they_were_shown_with
        unsettled_bookings_are_read_in_parts
        api_keys_are_kept_and_revoked
        ledger_time_never_goes_back
        a_closed_ledger_takes_nothing;
    refunds:
        money_that_comes_back_is_sent_again;
}
