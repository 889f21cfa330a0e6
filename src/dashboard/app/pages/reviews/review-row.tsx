import { Anchor, Button, Group, Text } from "@mantine/core";
import { Link } from "wouter";

import { sentence } from "../../ui/format.ts";
import { Highlighted, Stars, Tag } from "../../ui/badges.tsx";
import { excerpt, has } from "../../ui/text-query.ts";
import { Time } from "../../ui/time.tsx";
import type { RowProps } from "../../ui/virtual-rows.tsx";
import { useNames, type Review } from "./data.ts";

interface ReviewProps {
  readonly review: Review;
}

interface ReviewRowProps extends ReviewProps {
  readonly rowProps: RowProps;
  /** Search text to highlight in the review; undefined without a search. */
  readonly q: string | undefined;
}

/** Shows one review in the list of reviews. A click anywhere in the row opens the review. */
export function ReviewRow({ review, rowProps, q }: ReviewRowProps) {
  const names = useNames();
  const { id, rate, reviewer } = review;
  const name = reviewer ?? "Anonymous";
  return (
    <li className="review-row" {...rowProps}>
      <Group gap="xs" className="shrinks review-who">
        <Stars rate={rate} />
        <Anchor component={Link} href={`/reviews/${id}`} className="covers" fw={600} c="inherit">
          <Highlighted text={name} q={q} />
        </Anchor>
        <Text size="sm" c="dimmed" span>
          {names.source(review.source_platform)} · {names.store(review.store_id)}
        </Text>
      </Group>
      <Text size="sm" c="dimmed" span className="on-top one-line review-time">
        <Time at={review.reviewed_at} />
      </Text>
      <Words review={review} q={q} />
      <Group gap={6} className="review-marks">
        <Marks review={review} />
        {isOpen(review) && (
          <Button
            component={Link}
            href={`/reviews/${id}?respond`}
            className="on-top"
            size="compact-xs"
            variant="light"
            aria-label={`Respond to ${name}`}
          >
            Respond
          </Button>
        )}
      </Group>
    </li>
  );
}

/** Returns whether a user can still write the first response to the review. */
const isOpen = ({ response, removed_at: removedAt }: Review) =>
  response === null && removedAt === null;

/**
 * Shows the text of the review. If the search text occurs only in the response, an excerpt of the response is
 * shown, too.
 */
function Words({ review: { content, response }, q }: Omit<ReviewRowProps, "rowProps">) {
  const isInResponse =
    q !== undefined && !has(content, q) && response !== null && has(response.body, q);
  return (
    <div className="review-text">
      {content === "" ? (
        <Text size="sm" c="dimmed" fs="italic">
          Stars without a text.
        </Text>
      ) : (
        <Text size="sm" lineClamp={isInResponse ? 1 : 2}>
          <Highlighted text={q === undefined ? content : excerpt(content, q)} q={q} />
        </Text>
      )}
      {isInResponse && (
        <Text size="sm" lineClamp={1}>
          <Text span inherit c="dimmed">
            Response:{" "}
          </Text>
          <Highlighted text={excerpt(response.body, q)} q={q} />
        </Text>
      )}
    </div>
  );
}

/** Shows the response, flag, assignee and removal of a review as tags. */
function Marks({ review }: ReviewProps) {
  const names = useNames();
  const { response, flag, assigned_user_id: assignee } = review;
  return (
    <>
      {response !== null && <Mark text="Answered" color="teal" />}
      {flag !== null && (
        <Mark
          text={`Flag: ${sentence(flag.status).toLowerCase()}`}
          color={flag.status === "open" || flag.status === "under_review" ? "yellow" : "gray"}
        />
      )}
      {assignee !== null && <Mark text={`Assigned to ${names.user(assignee)}`} />}
      {review.removed_at !== null && <Mark text="Removed by its site" color="red" />}
    </>
  );
}

function Mark({ text, color = "gray" }: { readonly text: string; readonly color?: string }) {
  return (
    <Tag color={color} isQuiet>
      {text}
    </Tag>
  );
}
