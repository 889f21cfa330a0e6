import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import "./pages/webhooks/webhooks.css";
import "./ui/figures.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app.tsx";
import { SessionProvider } from "./session.tsx";
import { queryClient } from "./queries.ts";
import { Look, styleNonce } from "./theme.tsx";

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no #root.");
// The scroll lock behind a dialog writes a style element of its own.
setNonce(styleNonce());
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <SessionProvider>
        <Look>
          <App />
        </Look>
      </SessionProvider>
    </QueryClientProvider>
  </StrictMode>,
);
