// Package reviewrelay contains the events of ReviewRelay and verifies deliveries.
package reviewrelay

import (
	"encoding/json"
	"time"
)

// Values of Event.Event. Ignore values that you do not know, because new ones may be added.
const (
	ReviewReceived              = "review_received"
	ReviewUpdated               = "review_updated"
	ReviewRemoved               = "review_removed"
	ProfanityDetected           = "profanity_detected"
	ReviewFlagged               = "review_flagged"
	FlagStatusChanged           = "flag_status_changed"
	ReviewAssigned              = "review_assigned"
	NoteAdded                   = "note_added"
	ResponseSubmitted           = "response_submitted"
	ResponseUpdated             = "response_updated"
	ResponseDeleted             = "response_deleted"
	HomeownerNotifiedOfResponse = "homeowner_notified_of_response"
	ResponsePostSucceeded       = "response_post_succeeded"
	ResponsePostFailed          = "response_post_failed"
	ReviewPullConnected         = "review_pull_connected"
	ReviewPullDisconnected      = "review_pull_disconnected"
	ResponsePostConnected       = "response_post_connected"
	ResponsePostDisconnected    = "response_post_disconnected"
	WebhookTest                 = "webhook.test"
)

// Event is the body of a delivery. Fields that an event does not have are nil or empty.
type Event struct {
	Event      string    `json:"event"`
	EventID    string    `json:"event_id"`
	OccurredAt time.Time `json:"occurred_at"`
	// DeliveredAt is the time of the attempt; nil in a minimal body.
	DeliveredAt *time.Time `json:"delivered_at"`
	Partner     Partner    `json:"partner"`

	// Fields of review events. In a minimal body, the review contains only its id.
	Actor  *Actor  `json:"actor"`
	Review *Review `json:"review"`
	// Metadata is a JSON object whose content depends on the event.
	Metadata json.RawMessage `json:"metadata"`

	// Fields of events about a connection to a review site.
	Store      *Store      `json:"store"`
	ReviewSite *ReviewSite `json:"review_site"`
	// Axis is "pull" for collecting reviews, "post" for posting responses.
	Axis      string  `json:"axis"`
	ErrorCode *string `json:"error_code"`
	Reason    *string `json:"reason"`
	ReviewID  *int64  `json:"review_id"`
	// ReviewHistoryID occurs in minimal bodies and in posting events.
	ReviewHistoryID *int64 `json:"review_history_id"`
}

type Partner struct {
	ID int64 `json:"id"`
}

type Actor struct {
	// Type is "user" or "system".
	Type string `json:"type"`
	ID   *int64 `json:"id"`
	Name string `json:"name"`
}

type Review struct {
	ID               int64   `json:"id"`
	ExternalReviewID string  `json:"external_review_id"`
	StoreID          int64   `json:"store_id"`
	ReviewSiteID     int64   `json:"review_site_id"`
	SourcePlatform   string  `json:"source_platform"`
	Rate             int     `json:"rate"`
	Reviewer         *string `json:"reviewer"`
}

type Store struct {
	ID int64 `json:"id"`
}

type ReviewSite struct {
	StoreReviewSiteID int64   `json:"store_review_site_id"`
	ReviewSiteID      int64   `json:"review_site_id"`
	Name              string  `json:"name"`
	ConnectionStatus  string  `json:"connection_status"`
	DisconnectReason  *string `json:"disconnect_reason"`
}
