<?php

/** $body is the body exactly as received (php://input); $signature is the header X-SVC-Signature, or null. */
function is_signed(string $secret, string $body, ?string $signature): bool
{
    $expected = 'sha256=' . hash_hmac('sha256', $body, $secret);
    return hash_equals($expected, $signature ?? '');
}

if (PHP_SAPI === 'cli' && isset($argv[2])) {
    // php verify.php <secret> <signature> < body
    exit(is_signed($argv[1], file_get_contents('php://stdin'), $argv[2]) ? 0 : 1);
}
