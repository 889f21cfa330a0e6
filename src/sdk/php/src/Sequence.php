<?php

declare(strict_types=1);

namespace ReviewRelay;

/**
 * Finds the events that a receiver has missed, by `X-SVC-Sequence` and `X-SVC-Settled`. A place is `sequence`, the
 * number of an event at its subscription, and `settled`, the number up to which every event was delivered or given up.
 *
 * A state has the numbers that a receiver has got from a subscription, as JSON: `settled`, the highest settled number
 * so far; `received`, the received numbers above it; `missed`, the numbers up to it that were not received; and
 * `earlier`, those from before the first request that have not come since. Lists have the first and the last of
 * consecutive numbers, in order, without adjacent ranges.
 *
 * @phpstan-type Ranges list<array{int, int}>
 * @phpstan-type Place array{sequence: int, settled: int}
 * @phpstan-type SequenceState array{settled: int, received: Ranges, missed: Ranges, earlier: Ranges}
 */
final class Sequence
{
    /**
     * Reads the place of an event from the headers of a verified request. Returns null without valid headers, as in
     * tests and batches, because an event must not be refused for them.
     *
     * @param array<string, string> $headers such as `getallheaders()`
     * @return ?Place
     */
    public static function placeOf(array $headers): ?array
    {
        $given = array_change_key_case($headers);
        $sequence = self::numberOf($given['x-svc-sequence'] ?? '');
        $settled = self::numberOf($given['x-svc-settled'] ?? '');
        $isValid = $sequence !== null && $sequence !== 0 && $settled !== null;
        return $isValid ? ['sequence' => $sequence, 'settled' => $settled] : null;
    }

    /**
     * Adds a request to the state of its subscription, and tells what the receiver has missed. Read the state, call
     * this method and store the new state in one transaction that locks the state, because requests may come at the
     * same time. With null, the numbers up to the settled one count as events from before the headers were switched on.
     * Begin with `settled` 0 and empty lists instead if the subscription has had the headers from its creation.
     *
     * @param ?SequenceState $state such as `json_decode($text, true)`
     * @param Place $place
     * @return array{state: SequenceState, missed: Ranges, repeat: bool, filled: bool} the state to store, the numbers
     *     that this request shows to be missed (each number is reported once), whether the number was received before,
     *     and whether it had been reported as missed
     */
    public static function advance(?array $state, array $place): array
    {
        ['sequence' => $sequence, 'settled' => $settled] = $place;
        $first = ['settled' => $settled, 'received' => [], 'missed' => [], 'earlier' => self::ranged(1, $settled)];
        $before = $state ?? $first;
        $filled = self::has($before['missed'], $sequence);
        $isLate = $filled || self::has($before['earlier'], $sequence);
        $isKnown = $sequence <= $before['settled'] || self::has($before['received'], $sequence);
        $one = self::ranged($sequence, $sequence);
        $received = self::union($before['received'], $one);
        $upTo = max($before['settled'], $settled);
        $missed = self::minus(self::ranged($before['settled'] + 1, $upTo), $received);
        $next = [
            'settled' => $upTo,
            'received' => self::minus($received, self::ranged(1, $upTo)),
            'missed' => self::union(self::minus($before['missed'], $one), $missed),
            'earlier' => self::minus($before['earlier'], $one),
        ];
        return ['state' => $next, 'missed' => $missed, 'repeat' => !$isLate && $isKnown, 'filled' => $filled];
    }

    private static function numberOf(string $value): ?int
    {
        $isNumber = preg_match('/\A(?:0|[1-9][0-9]{0,15})\z/', $value) === 1;
        return $isNumber && (int) $value < 2 ** 53 ? (int) $value : null;
    }

    /** @return Ranges */
    private static function ranged(int $first, int $last): array
    {
        return $first > $last ? [] : [[$first, $last]];
    }

    /** @param Ranges $ranges */
    private static function has(array $ranges, int $number): bool
    {
        foreach ($ranges as [$first, $last]) {
            if ($first <= $number && $number <= $last) {
                return true;
            }
        }
        return false;
    }

    /**
     * Merges two lists of ranges into one in order, without overlapping or adjacent ranges.
     *
     * @param Ranges $some
     * @param Ranges $others
     * @return Ranges
     */
    private static function union(array $some, array $others): array
    {
        $all = [...$some, ...$others];
        sort($all);
        $merged = [];
        foreach ($all as [$first, $last]) {
            $end = count($merged) - 1;
            if ($end < 0 || $merged[$end][1] + 1 < $first) {
                $merged[] = [$first, $last];
            } else {
                $merged[$end][1] = max($merged[$end][1], $last);
            }
        }
        return $merged;
    }

    /**
     * Removes the numbers in `$cuts` from `$ranges`. Both lists are in order.
     *
     * @param Ranges $ranges
     * @param Ranges $cuts
     * @return Ranges
     */
    private static function minus(array $ranges, array $cuts): array
    {
        $left = [];
        foreach ($ranges as [$start, $last]) {
            $first = $start;
            foreach ($cuts as [$from, $to]) {
                if ($from <= $last && $to >= $start) {
                    array_push($left, ...self::ranged($first, $from - 1));
                    $first = $to + 1;
                }
            }
            array_push($left, ...self::ranged($first, $last));
        }
        return $left;
    }
}
