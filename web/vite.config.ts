import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One file, with nothing to load. `assay` puts the data where the mark <!--data--> stands.
export default defineConfig({
  plugins: [viteSingleFile()],
  build: { target: 'es2022', modulePreload: false, minify: 'esbuild' },
});
