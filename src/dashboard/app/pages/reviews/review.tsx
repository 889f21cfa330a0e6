import {
  Alert,
  Paper,
  Select,
  Stack,
  Text,
  Textarea,
  ThemeIcon,
  Button,
  Group,
} from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useParams } from "wouter";

import css from "./review.module.css";
import { apiErrorOf, fieldError } from "../../api/client.ts";
import { roleName } from "../../session/roles.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { Stars, StateBadge } from "../../ui/badges.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { errorMessageOf } from "../../ui/error-message.ts";
import { Form, useForm } from "../../ui/form.tsx";
import { sentence } from "../../ui/format.ts";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { PageHeader, Panel, Dimmed } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { Loaded, NotFound, ErrorNotice } from "../../ui/states.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import {
  colleaguesOptions,
  type Review,
  reviewOptions,
  type ReviewWithHistory,
  useNames,
  useReviewActions,
} from "./data.ts";
import { describeEntry, type DESCRIPTIONS, type HistoryEntry, isDescribed } from "./history.ts";
import { Response, type ReviewAtSiteProps } from "./response.tsx";
import { FLAG_MEANING, transitionsOf } from "./review-model.ts";

const BACK = { href: "/reviews", title: "Reviews" };

export function Page() {
  const { id } = useParams<{ id: string }>();
  const review = useQuery(reviewOptions(useApi(), id));
  const status = apiErrorOf(review.error)?.status;
  // Shows "not found" for both 404 and 403, so that the page does not disclose the existence of a review that
  // the user may not see.
  if (status === 404 || status === 403) return <NotFound />;
  return <Loaded query={review}>{(data) => <ReviewPage key={data.id} review={data} />}</Loaded>;
}

function ReviewPage({ review }: { readonly review: ReviewWithHistory }) {
  const names = useNames();
  const source = names.source(review.source_platform);
  return (
    <>
      <PageHeader
        title={`Review by ${review.reviewer ?? "an anonymous customer"}`}
        description={`${names.store(review.store_id)} · ${source}`}
        back={BACK}
      />
      <div className={css.reviewPage}>
        <Stack gap="lg" className={css.reviewMain}>
          {review.removed_at !== null && <Removed at={review.removed_at} source={source} />}
          <ReviewText review={review} />
          <Panel title="Response" state={review.response === null ? "none" : "given"}>
            <Response review={review} source={source} />
          </Panel>
        </Stack>
        <Stack gap="lg" className={css.reviewSide}>
          <Panel title="Assigned to">
            <Assignment review={review} />
          </Panel>
          <Panel title="Flag" state={review.flag?.status ?? "none"}>
            <Flag review={review} source={source} />
          </Panel>
        </Stack>
        <div className={css.reviewHistory}>
          <Panel title="Notes and history">
            <Stack gap="lg">
              <Notes review={review} />
              <Timeline entries={review.history} />
            </Stack>
          </Panel>
        </div>
      </div>
    </>
  );
}

function ReviewText({ review }: { readonly review: Review }) {
  return (
    <Paper withBorder p="lg" component="article" aria-label="The review">
      <Stars rate={review.rate} />
      <Text size="lg" mt="xs" className={css.asWritten}>
        {review.content === "" ? (
          <Text span inherit c="dimmed" fs="italic">
            Rating without text.
          </Text>
        ) : (
          review.content
        )}
      </Text>
      <Text size="sm" c="dimmed" mt="sm">
        Written <ExactTime at={review.reviewed_at} />
      </Text>
    </Paper>
  );
}

function Removed({ at, source }: { readonly at: string; readonly source: string }) {
  return (
    <Alert color="yellow" icon={<Icon name="alert" />} title={`${source} removed this review`}>
      Since <ExactTime at={at} /> it is no longer visible there. You cannot respond to it or flag it
      any more. Its response, notes and history stay here.
    </Alert>
  );
}

/** Shows the assignee of the review. Selecting a user assigns the review immediately, without a save button. */
function Assignment({ review }: { readonly review: Review }) {
  const { user: me } = useSession();
  const names = useNames();
  const { assign } = useReviewActions(review.id);
  const { data: colleagues = [] } = useQuery(colleaguesOptions(useApi(), review.store_id));
  const { mutate, error, isPending } = useMutation({
    mutationFn: assign,
    onSuccess: (_, id) => notify.done(`Assigned to ${id === me.id ? "you" : names.user(id)}.`),
  });
  const { assigned_user_id: assignee } = review;
  const isGone = assignee !== null && !colleagues.some(({ id }) => id === assignee);
  return (
    <Stack gap="xs">
      <Select
        aria-label="Assigned to"
        placeholder="Nobody"
        searchable
        allowDeselect={false}
        checkIconPosition="right"
        nothingFoundMessage="No user with access to this store has this name."
        data={colleagues.map(({ id, name, role }) => ({
          value: String(id),
          label: `${name}${id === me.id ? " (you)" : ""} · ${roleName(role)}`,
        }))}
        value={assignee === null || isGone ? null : String(assignee)}
        disabled={isPending}
        error={
          fieldError(error, "user_id") ?? (error === null ? undefined : errorMessageOf(error).title)
        }
        onChange={(value) => value !== null && mutate(Number(value))}
      />
      <Dimmed size="sm">
        {isGone
          ? `Assigned to ${names.user(assignee)}, who no longer has access. Assign it to another user.`
          : "Users with access to this store."}
      </Dimmed>
    </Stack>
  );
}

const MAX_NOTE_CHARS = 10_000;

function Notes({ review }: { readonly review: Review }) {
  const { addNote } = useReviewActions(review.id);
  const form = useForm({
    name: `review:${review.id}:note`,
    initial: { body: "" },
    send: ({ body }) => addNote(body),
    done: "Note added.",
  });
  return (
    <Form
      form={form}
      gap="xs"
      action="Add note"
      variant="default"
      isReady={form.draft.body.trim() !== ""}
    >
      <Textarea
        label="Add a note"
        description="Only your colleagues can see notes. The reviewer cannot."
        autosize
        minRows={2}
        maxRows={10}
        maxLength={MAX_NOTE_CHARS}
        {...form.text("body")}
      />
    </Form>
  );
}

const ICONS: Readonly<Record<keyof typeof DESCRIPTIONS, IconName>> = {
  review_received: "star",
  review_updated: "edit",
  review_removed: "trash",
  profanity_detected: "alert",
  review_flagged: "flag",
  flag_status_changed: "flag",
  review_assigned: "user",
  note_added: "list",
  response_submitted: "message",
  response_updated: "edit",
  response_deleted: "trash",
  homeowner_notified_of_response: "bell",
  response_post_succeeded: "check",
  response_post_failed: "alert",
};

/** Shows the history of a review, the latest entry first. */
function Timeline({ entries }: { readonly entries: readonly HistoryEntry[] }) {
  return (
    <ol className={css.history} reversed aria-label="History, latest first">
      {entries.toReversed().map((one) => (
        <TimelineEntry key={one.id} entry={one} />
      ))}
    </ol>
  );
}

function TimelineEntry({ entry }: { readonly entry: HistoryEntry }) {
  const { who, what, quote, more } = describeEntry(entry, useNames());
  return (
    <li>
      <ThemeIcon variant="light" color="gray" size={30} radius="xl">
        <Icon name={isDescribed(entry.event) ? ICONS[entry.event] : "clock"} size={16} />
      </ThemeIcon>
      <div className="shrinks">
        <Text size="sm">
          <Text span fw={600} inherit>
            {who}
          </Text>{" "}
          {what}{" "}
          <Text span c="dimmed" inherit>
            · <Time at={entry.occurred_at} />
          </Text>
        </Text>
        {quote !== undefined && (
          <Text size="sm" component="blockquote" className={`${css.asWritten} ${css.quote}`}>
            {quote}
          </Text>
        )}
        {more !== undefined && <Dimmed size="sm">{more}</Dimmed>}
      </div>
    </li>
  );
}

const MAX_FLAG_CHARS = 1_000;

/** Shows the state of a review's flag, and buttons for the state changes that are possible from this state. */
function Flag({ review, source }: ReviewAtSiteProps) {
  const { flag, removed_at: removedAt } = review;
  const isOpen = transitionsOf(flag?.status).length > 0;
  return (
    <Stack gap="md">
      {flag !== null && <FlagState flag={flag} />}
      {isOpen && <FlagMoves review={review} source={source} />}
      {!isOpen && removedAt === null && <FlagForm review={review} source={source} />}
      {flag === null && removedAt !== null && (
        <Dimmed size="sm">The review was not flagged before it was removed.</Dimmed>
      )}
    </Stack>
  );
}

function FlagState({ flag: { status, reason } }: { readonly flag: NonNullable<Review["flag"]> }) {
  return (
    <div>
      <StateBadge state={status} />
      <Text size="sm" mt={6}>
        {FLAG_MEANING[status]}
      </Text>
      {reason !== null && (
        <Text size="sm" c="dimmed" mt={4} className={css.asWritten}>
          Reason: {reason}
        </Text>
      )}
    </div>
  );
}

function FlagMoves({ review, source }: ReviewAtSiteProps) {
  const { moveFlag } = useReviewActions(review.id);
  const { mutate, error, isPending } = useMutation({
    mutationFn: moveFlag,
    onSuccess: ({ flag }) => notify.done(`Flag set to “${sentence(flag?.status ?? "")}”.`),
  });
  return (
    <Stack gap="xs">
      <Text size="sm">
        Only {source} decides about the flag. When it has answered you, record its answer here.
        Withdrawing the flag is your own decision. The account owner gets an email about each
        change.
      </Text>
      <Group gap="xs" component="fieldset">
        <Text size="sm" fw={500} component="legend" mb={6}>
          Record the outcome
        </Text>
        {transitionsOf(review.flag?.status).map(({ to, action }) =>
          to === "under_review" ? (
            <Button
              key={to}
              variant="default"
              size="xs"
              onClick={() => mutate(to)}
              loading={isPending}
            >
              {action}
            </Button>
          ) : (
            <ConfirmedAction
              key={to}
              label={action}
              button={{ size: "xs" }}
              title={to === "withdrawn" ? "Withdraw the flag?" : `Record “${action}”?`}
              action={to === "withdrawn" ? "Withdraw the flag" : "Record"}
              onConfirm={() => moveFlag(to)}
              done={`Flag set to “${sentence(to)}”.`}
            >
              This closes the flag, and you cannot undo it. You can flag the review again later.
            </ConfirmedAction>
          ),
        )}
      </Group>
      {error !== null && <ErrorNotice error={error} />}
    </Stack>
  );
}

function FlagForm({ review, source }: ReviewAtSiteProps) {
  const { flag } = useReviewActions(review.id);
  const form = useForm({
    name: `review:${review.id}:flag`,
    initial: { reason: "" },
    send: ({ reason }) => flag(reason),
    done: "Review flagged.",
  });
  return (
    <Form
      form={form}
      gap="xs"
      action="Flag review"
      variant="default"
      isReady={form.draft.reason.trim() !== ""}
    >
      <Textarea
        label={review.flag === null ? "Why should it be checked?" : "Reason for flagging it again"}
        description={`For example: not a customer, wrong business, or against the rules of ${source}.`}
        autosize
        minRows={2}
        maxRows={8}
        maxLength={MAX_FLAG_CHARS}
        {...form.text("reason")}
      />
    </Form>
  );
}
