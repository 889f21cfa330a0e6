<?php

declare(strict_types=1);

namespace ReviewRelay;

/** Verifies the deliveries of a subscription. */
final readonly class Webhook
{
    private const STANDARD = 'whsec_';

    /** Minimum length in bytes of a key in the form `whsec_…`: the shortest secret that a subscription can have. */
    private const LEAST_BYTES = 8;

    /**
     * @param list<string> $secrets the current secrets of the subscription; there are two during a rotation, and they
     *     may have the form `whsec_…` of Standard Webhooks
     * @param int $tolerance maximum difference in seconds between the time of a delivery and the clock
     */
    public function __construct(private array $secrets, private int $tolerance = 300)
    {
    }

    /**
     * Returns the event of a delivery. The age of a minimal body is checked only if the subscription has
     * `standard_webhooks`, because the body contains no time.
     *
     * @param string $body the raw body as received (`php://input`)
     * @param array<string, string> $headers such as `getallheaders()`
     * @param ?int $now the current time in Unix seconds, for tests
     * @throws SignatureError
     */
    public function verify(string $body, array $headers, ?int $now = null): Event
    {
        $given = array_change_key_case($headers);
        $keys = array_map(self::keyOf(...), $this->secrets);
        $isPlain = fn (string $secret) => !str_starts_with($secret, self::STANDARD);
        $id = $given['webhook-id'] ?? '';
        $timestamp = $given['webhook-timestamp'] ?? '';
        $signatures = $given['webhook-signature'] ?? '';
        if ($id !== '' && $timestamp !== '' && $signatures !== '') {
            $sign = fn (string $key) => 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
            self::requireMatch(explode(' ', $signatures), array_map($sign, $keys));
            $this->checkTime((int) $timestamp, $now);
        } else {
            // A secret in the form whsec_ requires the headers above. A replayed delivery could omit them, because they
            // contain the time.
            $sign = fn (string $key) => 'sha256=' . hash_hmac('sha256', $body, $key);
            $expected = array_map($sign, array_filter($this->secrets, $isPlain));
            $header = fn (string $name) => $given[$name] ?? '';
            self::requireMatch(array_map($header, ['x-svc-signature', 'x-svc-signature-previous']), $expected);
        }
        $event = Event::fromJson($body);
        if ($event->delivered_at !== null) {
            $this->checkTime((int) strtotime($event->delivered_at), $now);
        }
        return $event;
    }

    /**
     * @param list<string> $given
     * @param array<string> $expected
     */
    private static function requireMatch(array $given, array $expected): void
    {
        foreach ($expected as $signature) {
            foreach ($given as $one) {
                if (hash_equals($signature, $one)) {
                    return;
                }
            }
        }
        throw new SignatureError('No signature fits a secret.');
    }

    /** Returns the key of a secret. After `whsec_` follows the base64 of the plain secret. */
    private static function keyOf(string $secret): string
    {
        if ($secret === '') {
            throw new \InvalidArgumentException('A secret is empty.');
        }
        if (!str_starts_with($secret, self::STANDARD)) {
            return $secret;
        }
        $encoded = substr($secret, strlen(self::STANDARD));
        $key = (string) base64_decode($encoded, true);
        // The decoder ignores white space, so the key is encoded again and compared.
        if (base64_encode($key) !== $encoded || strlen($key) < self::LEAST_BYTES) {
            throw new \InvalidArgumentException('A secret is not whsec_ and the base64 of at least 8 bytes.');
        }
        return $key;
    }

    private function checkTime(int $at, ?int $now): void
    {
        if (abs(($now ?? time()) - $at) > $this->tolerance) {
            throw new SignatureError('The delivery is too old, or the clock is wrong.');
        }
    }
}
