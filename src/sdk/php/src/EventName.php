<?php

declare(strict_types=1);

namespace ReviewRelay;

/** The names of events. Ignore an event whose `name()` is null, because new ones may be added. */
enum EventName: string
{
    case ReviewReceived = 'review_received';
    case ReviewUpdated = 'review_updated';
    case ReviewRemoved = 'review_removed';
    case ProfanityDetected = 'profanity_detected';
    case ReviewFlagged = 'review_flagged';
    case FlagStatusChanged = 'flag_status_changed';
    case ReviewAssigned = 'review_assigned';
    case NoteAdded = 'note_added';
    case ResponseSubmitted = 'response_submitted';
    case ResponseUpdated = 'response_updated';
    case ResponseDeleted = 'response_deleted';
    case HomeownerNotifiedOfResponse = 'homeowner_notified_of_response';
    case ResponsePostSucceeded = 'response_post_succeeded';
    case ResponsePostFailed = 'response_post_failed';
    case ReviewPullConnected = 'review_pull_connected';
    case ReviewPullDisconnected = 'review_pull_disconnected';
    case ResponsePostConnected = 'response_post_connected';
    case ResponsePostDisconnected = 'response_post_disconnected';
    case WebhookTest = 'webhook.test';
}
