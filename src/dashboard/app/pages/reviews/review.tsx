import { Alert, Paper, Stack, Text } from "@mantine/core";
import { useParams } from "wouter";

import { apiErrorOf } from "../../api/api-error.ts";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { Assignment } from "./assignment.tsx";
import { useNames, useReview, type Review, type ReviewWithHistory } from "./data.ts";
import { Flag } from "./flag.tsx";
import { Notes } from "./notes.tsx";
import { Response } from "./response.tsx";
import { Stars } from "./stars.tsx";
import { Timeline } from "./timeline.tsx";

import "./reviews.css";

const BACK = { href: "/reviews", title: "Reviews" };

export function Page() {
  const { id } = useParams<{ id: string }>();
  const review = useReview(id);
  const status = apiErrorOf(review.error)?.status;
  // A review of another store looks like one that does not exist: nothing here may tell that it does.
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
          <ReviewText review={review} />
          <Panel title="Response" state={review.response === null ? "none" : "given"}>
            <Response review={review} source={source} />
          </Panel>
        </Stack>
        <Stack gap="lg" className="review-side">
          <Panel title="Assigned to">
            <Assignment review={review} />
          </Panel>
          <Panel title="Flag" state={review.flag?.status ?? "none"}>
            <Flag review={review} source={source} />
          </Panel>
        </Stack>
        <div className="review-history">
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
