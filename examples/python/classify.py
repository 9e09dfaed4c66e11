"""A k-NN classifier for handwritten digits, with a picture of what it confuses (if matplotlib is there).

    python examples/python/classify.py [PICTURE.png]
"""
# %% Digits, 8 x 8 pixels each: the first 1200 are known, the others are asked for
import sys

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from warpwave.sklearn import KNeighborsClassifier, NearestNeighbors

images, labels = load_digits(return_X_y=True)
known, asked = images[:1200], images[1200:]

# %% How many neighbours should vote
search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5], "weights": ["uniform", "distance"]}, cv=3).fit(known, labels[:1200])
guessed = search.predict(asked)
wrong = (guessed != labels[1200:]).nonzero()[0]
print(f"best: {search.best_params_}; {len(asked) - len(wrong)} of {len(asked)} right")

# %% What the wrong ones look like, beside their nearest neighbour
if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    nearest = NearestNeighbors(1).fit(known).kneighbors(asked[wrong], return_distance=False)[:, 0]
    figure, axes = pyplot.subplots(2, min(len(wrong), 8), figsize=(8, 2.4), squeeze=False)
    for column, i in enumerate(wrong[:8]):
        for axis, image, title in ((axes[0, column], asked[i], f"{labels[1200 + i]} taken for {guessed[i]}"), (axes[1, column], known[nearest[column]], "nearest")):
            axis.imshow(image.reshape(8, 8), cmap="gray_r")
            axis.set_title(title, fontsize=6)
            axis.axis("off")
    figure.savefig(sys.argv[1], dpi=120)
    print(f"picture: {sys.argv[1]}")
