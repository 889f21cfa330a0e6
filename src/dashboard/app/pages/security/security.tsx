import { Stack } from "@mantine/core";

import { PageHeader } from "../../ui/page-header.tsx";
import { PasswordSection } from "./change-password.tsx";
import { SessionsSection } from "./sessions.tsx";

export function Page() {
  return (
    <>
      <PageHeader title="Security" description="Your password, and where you are signed in." />
      <Stack gap="lg">
        <PasswordSection />
        <SessionsSection />
      </Stack>
    </>
  );
}
