<?php
// WEBHOOK_SECRET=... php -S 127.0.0.1:4000 receive.php

require_once __DIR__ . '/verify.php';

function answer(string $secret, string $body): int
{
    $signatures = [$_SERVER['HTTP_X_SVC_SIGNATURE'] ?? null, $_SERVER['HTTP_X_SVC_SIGNATURE_PREVIOUS'] ?? null];
    if (!is_signed($secret, $body, ...$signatures)) {
        return 401;
    }
    $event = json_decode($body, true, 64, JSON_THROW_ON_ERROR);
    if (isset($event['delivered_at']) && abs(time() - strtotime($event['delivered_at'])) > 300) {
        return 401;
    }
    // Store these in a database table. Here a file marks an event as handled.
    $mark = @fopen(sys_get_temp_dir() . '/handled-' . $event['event_id'], 'x');
    if ($mark === false) {
        return 200;
    }
    fclose($mark);
    error_log("{$event['event']} {$event['event_id']}"); // put the event into your queue
    return 204;
}

$secret = (string) getenv('WEBHOOK_SECRET');
if ($secret === '') {
    error_log("Set WEBHOOK_SECRET to the subscription's secret.");
    http_response_code(500);
    exit;
}
http_response_code(answer($secret, file_get_contents('php://input')));
