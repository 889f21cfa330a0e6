<?php

/** $body is the body exactly as received (php://input); give it X-SVC-Signature and X-SVC-Signature-Previous. */
function is_signed(string $secret, string $body, ?string ...$signatures): bool
{
    $expected = 'sha256=' . hash_hmac('sha256', $body, $secret);
    foreach ($signatures as $one) {
        if (hash_equals($expected, $one ?? '')) {
            return true;
        }
    }
    return false;
}

if (PHP_SAPI === 'cli' && isset($argv[2])) {
    // php verify.php <secret> <signature> [<previous signature>] < body
    exit(is_signed($argv[1], file_get_contents('php://stdin'), ...array_slice($argv, 2)) ? 0 : 1);
}
