<?php

declare(strict_types=1);

namespace ReviewRelay;

/** Verifies the deliveries of a subscription. */
final readonly class Webhook
{
    /**
     * @param list<string> $secrets the secrets that you hold, which are two during a rotation; they may have the form
     *     `whsec_…` of Standard Webhooks
     * @param int $tolerance how far the time of a delivery may be from the clock, in seconds
     */
    public function __construct(private array $secrets, private int $tolerance = 300)
    {
    }

    /**
     * Returns the event of a delivery. The age of a minimal body is checked only if the subscription has
     * `standard_webhooks`, because the body has no time.
     *
     * @param string $body the raw body as it arrived (`php://input`)
     * @param array<string, string> $headers such as `getallheaders()`
     * @param ?int $now the current time in Unix seconds, for tests
     * @throws SignatureError
     */
    public function verify(string $body, array $headers, ?int $now = null): Event
    {
        $given = array_change_key_case($headers);
        $id = $given['webhook-id'] ?? '';
        $timestamp = $given['webhook-timestamp'] ?? '';
        $signatures = $given['webhook-signature'] ?? '';
        if ($id !== '' && $timestamp !== '' && $signatures !== '') {
            $sign = fn (string $key) => 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
            $this->requireMatch(explode(' ', $signatures), $sign);
            $this->checkTime((int) $timestamp, $now);
        } else {
            $sign = fn (string $key) => 'sha256=' . hash_hmac('sha256', $body, $key);
            $this->requireMatch([$given['x-svc-signature'] ?? '', $given['x-svc-signature-previous'] ?? ''], $sign);
        }
        $event = Event::fromJson($body);
        if ($event->delivered_at !== null) {
            $this->checkTime((int) strtotime($event->delivered_at), $now);
        }
        return $event;
    }

    /**
     * @param list<string> $given
     * @param callable(string): string $sign
     */
    private function requireMatch(array $given, callable $sign): void
    {
        foreach ($this->secrets as $secret) {
            $expected = $sign(self::keyOf($secret));
            foreach ($given as $one) {
                if (hash_equals($expected, $one)) {
                    return;
                }
            }
        }
        throw new SignatureError('No signature fits a secret.');
    }

    /** Returns the key of a secret. `whsec_…` is the base64 of the plain secret. */
    private static function keyOf(string $secret): string
    {
        if ($secret === '') {
            throw new \InvalidArgumentException('A secret is empty.');
        }
        return str_starts_with($secret, 'whsec_') ? (string) base64_decode(substr($secret, 6)) : $secret;
    }

    private function checkTime(int $at, ?int $now): void
    {
        if (abs(($now ?? time()) - $at) > $this->tolerance) {
            throw new SignatureError('The delivery is too old, or the clock is wrong.');
        }
    }
}
