<?php

declare(strict_types=1);

namespace ReviewRelay;

/** The body of a delivery. Fields that an event does not have are null. */
final readonly class Event
{
    /**
     * @param array{id: int} $partner
     * @param ?string $delivered_at the time of the attempt; null in a minimal body
     * @param ?array{type: string, id: ?int, name: string} $actor
     * @param ?array{id: int, external_review_id?: string, store_id?: int, review_site_id?: int,
     *     source_platform?: string, rate?: int, reviewer?: ?string} $review a minimal body contains only `id`
     * @param ?array<string, mixed> $metadata depends on the event
     * @param ?array{id: int} $store
     * @param ?array{store_review_site_id: int, review_site_id?: int, name?: string, connection_status?: string,
     *     disconnect_reason?: ?string} $review_site
     * @param ?string $axis `pull` for collecting reviews, `post` for posting responses
     * @param ?int $review_history_id in minimal bodies and in posting events
     */
    public function __construct(
        public string $event,
        public string $event_id,
        public string $occurred_at,
        public array $partner,
        public ?string $delivered_at = null,
        public ?array $actor = null,
        public ?array $review = null,
        public ?array $metadata = null,
        public ?array $store = null,
        public ?array $review_site = null,
        public ?string $axis = null,
        public ?string $error_code = null,
        public ?string $reason = null,
        public ?int $review_id = null,
        public ?int $review_history_id = null,
    ) {
    }

    /** Reads an event from JSON. Fields that this version does not know are ignored. */
    public static function fromJson(string $json): self
    {
        $fields = json_decode($json, true, 64, JSON_THROW_ON_ERROR);
        $parameters = (new \ReflectionMethod(self::class, '__construct'))->getParameters();
        $names = array_map(fn ($one) => $one->getName(), $parameters);
        return new self(...array_intersect_key($fields, array_flip($names)));
    }

    public function name(): ?EventName
    {
        return EventName::tryFrom($this->event);
    }
}
