<?php
// composer require firebase/php-jwt
require 'vendor/autoload.php';

use Firebase\JWT\JWK;
use Firebase\JWT\JWT;

define('ROOT', getenv('REVIEWRELAY')); // SERVER_ROOT of ReviewRelay, such as https://reviews.example
const SCOPES = ['*', 'reviews:read']; // one of these opens your route

/** Answers the public keys. Keep them for five minutes in the cache that your requests share, such as APCu. */
function key_set(): array
{
    static $set;
    return $set ??= json_decode(request('/.well-known/jwks.json'), true, flags: JSON_THROW_ON_ERROR);
}

/** Answers the id of the user without asking. A revoked token passes until it expires. */
function check_by_keys(string $token): int
{
    $header = new stdClass();
    $claims = JWT::decode($token, JWK::parseKeySet(key_set(), 'RS256'), $header);
    $expected = [ROOT, ROOT . '/api', 'at+jwt'];
    if ([$claims->iss, $claims->aud, $header->typ] !== $expected || !isset($claims->exp)) {
        throw new UnexpectedValueException('The token is none of these.');
    }
    return opens($claims->scope) ? (int) $claims->sub : throw new UnexpectedValueException('The token lacks the scope.');
}

/** Asks ReviewRelay, which refuses a revoked token at once. */
function introspect(string $token): int
{
    $told = json_decode(request('/api/v1/platform/introspect', ['token' => $token]), flags: JSON_THROW_ON_ERROR);
    $valid = $told->active && opens($told->scope);
    return $valid ? $told->user_id : throw new UnexpectedValueException('The token is not valid here.');
}

function opens(string $scope): bool
{
    return array_intersect(SCOPES, explode(' ', $scope)) !== [];
}

function request(string $path, ?array $body = null): string
{
    $headers = ['Content-Type: application/json', 'Authorization: Bearer ' . getenv('SERVICE_TOKEN')];
    $post = $body === null ? [] : ['method' => 'POST', 'header' => $headers, 'content' => json_encode($body)];
    $answer = @file_get_contents(ROOT . $path, context: stream_context_create(['http' => $post + ['timeout' => 5]]));
    return $answer !== false ? $answer : throw new RuntimeException("There is no answer from $path.");
}

// php check_token.php < tokens, one a line
while (PHP_SAPI === 'cli' && ($token = fgets(STDIN)) !== false) {
    foreach (['check_by_keys', 'introspect'] as $check) {
        try {
            echo $check(trim($token)), ' ';
        } catch (Throwable $error) {
            fwrite(STDERR, $error->getMessage() . "\n");
            echo '- ';
        }
    }
    echo "\n";
}
