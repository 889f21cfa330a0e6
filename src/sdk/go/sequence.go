package reviewrelay

import (
	"net/http"
	"slices"
	"strconv"
)

// NumberRange contains the first and the last of consecutive numbers.
type NumberRange [2]int64

// Place is the place of an event among those of its subscription.
type Place struct {
	// Sequence is the number of the event (X-SVC-Sequence).
	Sequence int64
	// Settled is the number up to which every event was delivered or given up (X-SVC-Settled).
	Settled int64
}

// SequenceState contains the numbers that a receiver has got from a subscription. Store it as JSON. Lists are in order,
// without adjacent ranges.
type SequenceState struct {
	// Settled is the highest settled number so far. Every number up to it was received, is missed, or is in Earlier.
	Settled int64 `json:"settled"`
	// Received contains the received numbers above Settled.
	Received []NumberRange `json:"received"`
	// Missed contains the numbers up to Settled that were not received.
	Missed []NumberRange `json:"missed"`
	// Earlier contains the numbers from before the first request that have not come since.
	Earlier []NumberRange `json:"earlier"`
}

// Step is the result of Advance.
type Step struct {
	// State is the state to store.
	State SequenceState
	// Missed contains the numbers that this request shows to be missed. Each number is reported once.
	Missed []NumberRange
	// Repeat tells whether the number was received before.
	Repeat bool
	// Filled tells whether the number had been reported as missed.
	Filled bool
}

// PlaceOf reads the place of an event from the headers of a verified request. It returns nil without valid headers, as
// in tests and batches, because an event must not be refused for them.
func PlaceOf(header http.Header) *Place {
	sequence, isNumber := numberOf(header.Get("X-SVC-Sequence"))
	settled, isOther := numberOf(header.Get("X-SVC-Settled"))
	if !isNumber || !isOther || sequence == 0 {
		return nil
	}
	return &Place{Sequence: sequence, Settled: settled}
}

// Advance adds a request to the state of its subscription, and tells what the receiver has missed. Read the state, call
// this function and store the new state in one transaction that locks the state, because requests may come at the same
// time. With nil, the numbers up to the settled one count as events from before the headers were switched on. Begin
// with the empty SequenceState instead if the subscription has had the headers from its creation.
func Advance(state *SequenceState, place Place) Step {
	if state == nil {
		state = &SequenceState{Settled: place.Settled, Earlier: ranged(1, place.Settled)}
	}
	filled := has(state.Missed, place.Sequence)
	isLate := filled || has(state.Earlier, place.Sequence)
	isKnown := place.Sequence <= state.Settled || has(state.Received, place.Sequence)
	one := ranged(place.Sequence, place.Sequence)
	received := union(state.Received, one)
	upTo := max(state.Settled, place.Settled)
	missed := minus(ranged(state.Settled+1, upTo), received)
	return Step{
		State: SequenceState{
			Settled:  upTo,
			Received: minus(received, ranged(1, upTo)),
			Missed:   union(minus(state.Missed, one), missed),
			Earlier:  minus(state.Earlier, one),
		},
		Missed: missed,
		Repeat: !isLate && isKnown,
		Filled: filled,
	}
}

func numberOf(value string) (number int64, isNumber bool) {
	number, err := strconv.ParseInt(value, 10, 64)
	// ParseInt also accepts signs and leading zeros, so the number is written again and compared.
	return number, err == nil && strconv.FormatInt(number, 10) == value && 0 <= number && number < 1<<53
}

// ranged returns an empty list instead of nil, so that states are the same JSON in all packages.
func ranged(first, last int64) []NumberRange {
	if first > last {
		return []NumberRange{}
	}
	return []NumberRange{{first, last}}
}

func has(ranges []NumberRange, number int64) bool {
	return slices.ContainsFunc(ranges, func(one NumberRange) bool { return one[0] <= number && number <= one[1] })
}

// union merges two lists of ranges into one in order, without overlapping or adjacent ranges.
func union(some, others []NumberRange) []NumberRange {
	all := slices.Concat(some, others)
	slices.SortFunc(all, func(one, other NumberRange) int { return slices.Compare(one[:], other[:]) })
	merged := []NumberRange{}
	for _, one := range all {
		if end := len(merged) - 1; end < 0 || merged[end][1]+1 < one[0] {
			merged = append(merged, one)
		} else {
			merged[end][1] = max(merged[end][1], one[1])
		}
	}
	return merged
}

// minus removes the numbers in cuts from ranges. Both lists are in order.
func minus(ranges, cuts []NumberRange) []NumberRange {
	left := []NumberRange{}
	for _, one := range ranges {
		first := one[0]
		for _, cut := range cuts {
			if cut[0] <= one[1] && cut[1] >= one[0] {
				left = append(left, ranged(first, cut[0]-1)...)
				first = cut[1] + 1
			}
		}
		left = append(left, ranged(first, one[1])...)
	}
	return left
}
