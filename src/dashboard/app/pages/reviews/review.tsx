import { Alert, Paper, Select, Stack, Text, Textarea } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useParams } from "wouter";

import { apiErrorOf, fieldError } from "../../api/client.ts";
import { roleName } from "../../session/identity.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { Stars } from "../../ui/badges.tsx";
import { errorMessageOf } from "../../ui/error-message.ts";
import { Form, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader, Panel, Dimmed } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import {
  colleaguesOptions,
  type Review,
  reviewOptions,
  type ReviewWithHistory,
  useNames,
  useReviewActions,
} from "./data.ts";
import { Flag } from "./flag.tsx";
import { Timeline } from "./timeline.tsx";
import { Response } from "./response.tsx";
import css from "./review.module.css";

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
            Stars without a text.
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
      Since <ExactTime at={at} /> nobody sees it there. It can no longer be answered or flagged;
      what was said and done stays here.
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
        nothingFoundMessage="Nobody of that name sees this store."
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
          ? `Assigned to ${names.user(assignee)}, who can no longer see it. Choose somebody else.`
          : "Everybody in the list sees this store."}
      </Dimmed>
    </Stack>
  );
}

const MAX_CHARS = 10_000;

function Notes({ review }: { readonly review: Review }) {
  const { addNote } = useReviewActions(review.id);
  const form = useForm({
    name: `review:${review.id}:note`,
    initial: { body: "" },
    send: ({ body }) => addNote(body),
    done: "The note is added.",
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
        description="For your colleagues only; the reviewer never sees it."
        autosize
        minRows={2}
        maxRows={10}
        maxLength={MAX_CHARS}
        {...form.text("body")}
      />
    </Form>
  );
}
