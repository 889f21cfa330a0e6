import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "wouter";

import { sentence } from "../../ui/format.ts";
import { Tag } from "../../ui/tag.tsx";
import { Time } from "../../ui/time.tsx";
import type { Place } from "../../ui/virtual-rows.tsx";
import { useNames, type Review } from "./data.ts";
import { Stars } from "./stars.tsx";

interface ReviewProps {
  readonly review: Review;
}

/** Shows one review of the list; its link works on the whole row. */
export function ReviewRow({ review, place }: ReviewProps & { readonly place: Place }) {
  const names = useNames();
  const { id, rate, reviewer, content } = review;
  return (
    <li className="review-row" {...place}>
      <Group gap="xs" className="shrinks review-who">
        <Stars rate={rate} />
        <Anchor component={Link} href={`/reviews/${id}`} className="covers" fw={600} c="inherit">
          {reviewer ?? "Anonymous"}
        </Anchor>
        <Text size="sm" c="dimmed" span>
          {names.source(review.source_platform)} · {names.store(review.store_id)}
        </Text>
      </Group>
      <Text size="sm" c="dimmed" span className="on-top one-line review-time">
        <Time at={review.reviewed_at} />
      </Text>
      <Text
        lineClamp={2}
        size="sm"
        className="review-text"
        {...(content === "" && { c: "dimmed", fs: "italic" })}
      >
        {content === "" ? "Stars without a text." : content}
      </Text>
      <Marks review={review} />
    </li>
  );
}

/** Marks how far the review was dealt with. */
function Marks({ review }: ReviewProps) {
  const names = useNames();
  const { response, flag, assigned_user_id: assignee } = review;
  return (
    <Group gap={6} className="review-marks">
      {response === null ? <Mark text="No response" /> : <Mark text="Answered" color="teal" />}
      {flag !== null && (
        <Mark
          text={`Flag: ${sentence(flag.status).toLowerCase()}`}
          color={flag.status === "open" || flag.status === "under_review" ? "yellow" : "gray"}
        />
      )}
      {assignee !== null && <Mark text={`Assigned to ${names.user(assignee)}`} />}
      {review.removed_at !== null && <Mark text="Removed by its site" color="red" />}
    </Group>
  );
}

function Mark({ text, color = "gray" }: { readonly text: string; readonly color?: string }) {
  return (
    <Tag color={color} isQuiet>
      {text}
    </Tag>
  );
}
