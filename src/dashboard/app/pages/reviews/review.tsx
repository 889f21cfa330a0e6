import { Alert, Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { useParams } from "wouter";

import { problemOf } from "../../ui/explain.ts";
import { Icon } from "../../ui/icon.tsx";
import { useKeptFocus } from "../../ui/kept-focus.ts";
import { PageHeader } from "../../ui/page-header.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { Assignment } from "./assignment.tsx";
import { useNames, useReview, type ReviewWithHistory } from "./data.ts";
import { Flag } from "./flag.tsx";
import { Notes } from "./notes.tsx";
import { Response } from "./response.tsx";
import { Stars } from "./stars.tsx";
import { Timeline } from "./timeline.tsx";

const BACK = { href: "/reviews", title: "Reviews" };

export function Page() {
  const { id } = useParams<{ id: string }>();
  const review = useReview(id);
  const status = problemOf(review.error)?.status;
  // Another store's review is as good as none: nothing here may tell that it exists.
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
      <div className="review-page">
        <Stack gap="lg" className="review-main">
          {review.removed_at !== null && <Removed at={review.removed_at} source={source} />}
          <Paper withBorder p="lg" component="article" aria-label="The review">
            <Stars rate={review.rate} />
            <Text size="lg" mt="xs" className="as-written">
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
          <Section title="Response" state={review.response === null ? "none" : "given"}>
            <Response review={review} source={source} />
          </Section>
        </Stack>
        <Stack gap="lg" className="review-side">
          <Section title="Assigned to">
            <Assignment review={review} />
          </Section>
          <Section title="Flag" state={review.flag?.status ?? "none"}>
            <Flag review={review} source={source} />
          </Section>
        </Stack>
        <div className="review-history">
          <Section title="Notes and history">
            <Notes review={review} />
            <Timeline entries={review.history} />
          </Section>
        </div>
      </div>
    </>
  );
}

function Section({
  title,
  state = "",
  children,
}: {
  readonly title: string;
  /** Of what is in it, where its controls come and go. */
  readonly state?: string;
  readonly children: ReactNode;
}) {
  const place = useKeptFocus(state);
  return (
    <Paper
      withBorder
      p="lg"
      component="section"
      aria-label={title}
      ref={place}
      tabIndex={-1}
      className="section"
    >
      <Title order={2} size="h5" mb="sm">
        {title}
      </Title>
      {children}
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
